package kernellog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// maxRecord is the size in bytes of the buffer that a record is read into. The
// kernel's own is 8 KiB, and it has no longer ones.
const maxRecord = 16 << 10

// Device is what a Reader reads records from, one a call. *os.File is one.
type Device interface {
	io.ReadCloser
	// SetReadDeadline ends calls of Read that wait longer than until then, with
	// os.ErrDeadlineExceeded.
	SetReadDeadline(time.Time) error
}

// Reader reads the kernel's log, from the oldest record that the kernel still has.
type Reader struct {
	device Device
	buffer []byte
}

// OpenReader opens the kernel's log for reading. It takes a process that may see the
// log: root, where the kernel restricts it.
func OpenReader(path string) (*Reader, error) {
	// Without O_NONBLOCK, a call of Read that waits couldn't be ended.
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's log: %w", err)
	}
	return NewReader(file), nil
}

// NewReader returns a Reader of a device, which it closes in the end.
func NewReader(device Device) *Reader {
	return &Reader{device: device, buffer: make([]byte, maxRecord)}
}

// Next returns the next record, and waits for it. Where the kernel has given up
// records before they were read, numbers are missing between one record's and the
// next one's. The error wraps ErrMalformed for a record that isn't understood, after
// which there may be others, and os.ErrDeadlineExceeded at the deadline.
func (r *Reader) Next() (Record, error) {
	for {
		n, err := r.device.Read(r.buffer)
		if errors.Is(err, unix.EPIPE) {
			// Records were given up. The device now stands at the oldest that is left.
			continue
		}
		if err != nil {
			return Record{}, fmt.Errorf("read the kernel's log: %w", err)
		}
		return Parse(r.buffer[:n])
	}
}

// SetDeadline ends a call of Next that waits longer than until then.
func (r *Reader) SetDeadline(t time.Time) error {
	if err := r.device.SetReadDeadline(t); err != nil {
		return fmt.Errorf("stop reading the kernel's log: %w", err)
	}
	return nil
}

// Close closes the log.
func (r *Reader) Close() error { return r.device.Close() }
