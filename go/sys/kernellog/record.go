package kernellog

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrMalformed is wrapped by errors for records that aren't understood.
var ErrMalformed = errors.New("the kernel's log has a record that isn't understood")

// Kernel is syslog's facility of what the kernel itself says. Every other is a
// program's.
const Kernel = 0

// Record is one record of the kernel's log.
type Record struct {
	Priority Priority
	// Facility is syslog's number for who wrote it.
	Facility uint
	// Sequence counts the records of one boot, from 0.
	Sequence uint64
	// Uptime is when it was written, since the kernel started.
	Uptime time.Duration
	// Text is what it says. It may be of several lines, and hold any byte.
	Text string
}

// Parse reads a record in the form in which the kernel's device gives it:
//
//	priority and facility, sequence, microseconds, flags[, more];text
//
// in ASCII, where \xNN stands for bytes that aren't, and for \ itself. Lines after the
// first say which device it is about; they are left out. See the kernel's
// Documentation/ABI/testing/dev-kmsg.
func Parse(b []byte) (Record, error) {
	head, text, found := bytes.Cut(b, []byte(";"))
	if !found {
		return Record{}, fmt.Errorf("%w: nothing ends its beginning", ErrMalformed)
	}
	fields := strings.SplitN(string(head), ",", 4)
	if len(fields) < 4 {
		return Record{}, fmt.Errorf("%w: it begins with %d fields", ErrMalformed, len(fields))
	}
	prefix, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil {
		return Record{}, fmt.Errorf("%w: its priority: %w", ErrMalformed, err)
	}
	sequence, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return Record{}, fmt.Errorf("%w: its number: %w", ErrMalformed, err)
	}
	const most = uint64(1<<63-1) / uint64(time.Microsecond)
	microseconds, err := strconv.ParseUint(fields[2], 10, 64)
	if err == nil && microseconds > most {
		err = strconv.ErrRange
	}
	if err != nil {
		return Record{}, fmt.Errorf("%w: its time: %w", ErrMalformed, err)
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return Record{
		Priority: Priority(prefix & 7), Facility: uint(prefix >> 3), Sequence: sequence,
		Uptime: time.Duration(microseconds) * time.Microsecond, Text: unescape(line),
	}, nil
}

// unescape puts bytes in the place of what stands for them.
func unescape(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		if len(text) >= 4 && text[0] == '\\' && text[1] == 'x' {
			if value, err := strconv.ParseUint(string(text[2:4]), 16, 8); err == nil {
				b.WriteByte(byte(value))
				text = text[4:]
				continue
			}
		}
		b.WriteByte(text[0])
		text = text[1:]
	}
	return b.String()
}
