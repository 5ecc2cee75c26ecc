// Package console writes lines to several consoles at once, so that one that is
// stuck (a serial line with nobody at its other end, and flow control) holds up
// neither the others nor whoever writes.
package console

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// queueSize is how many lines may wait for one console. At 115,200 baud a
	// serial line needs 9 s for 1,000 lines of 100 bytes.
	queueSize = 1000
	// MaxLine is how many bytes of a line are kept.
	MaxLine = 4096
)

// Sink is one console.
type Sink struct {
	// Name is what the note of lost lines calls it.
	Name string
	// Writer gets one line a call, with its line feed. It may block for ever.
	Writer io.Writer
}

// Fan writes each line to every sink. Its methods may be called from several
// goroutines at once.
type Fan struct {
	// order has all sinks get lines in the same order. Nothing waits under it.
	order sync.Mutex
	sinks []*queue
}

// queue is one sink's lines that wait.
type queue struct {
	Sink
	mu      sync.Mutex
	changed *sync.Cond
	lines   [][]byte
	lost    int
	writing bool
	closed  bool
	ended   chan struct{}
}

// New starts a goroutine for each sink. Close ends them.
func New(sinks ...Sink) *Fan {
	f := &Fan{}
	for _, s := range sinks {
		q := &queue{Sink: s, ended: make(chan struct{})}
		q.changed = sync.NewCond(&q.mu)
		f.sinks = append(f.sinks, q)
		go q.run()
	}
	return f
}

// Write takes complete lines. It never waits and never fails: lines that find a
// sink's queue full are lost for that sink, which says how many were, later.
func (f *Fan) Write(lines []byte) (int, error) {
	f.order.Lock()
	defer f.order.Unlock()
	for line := range strings.Lines(string(lines)) {
		line = strings.TrimRight(line, "\r\n")
		line = line[:min(len(line), MaxLine)]
		for _, q := range f.sinks {
			q.put([]byte(line + "\n"))
		}
	}
	return len(lines), nil
}

// Flush waits until everything was written, or the time is over.
func (f *Fan) Flush(timeout time.Duration) {
	var over atomic.Bool
	deadline := time.AfterFunc(timeout, func() {
		over.Store(true)
		for _, q := range f.sinks {
			q.mu.Lock()
			q.changed.Broadcast()
			q.mu.Unlock()
		}
	})
	defer deadline.Stop()
	for _, q := range f.sinks {
		q.mu.Lock()
		for (len(q.lines) > 0 || q.writing) && !over.Load() {
			q.changed.Wait()
		}
		q.mu.Unlock()
	}
}

// Close drops what waits, and waits for no sink that is stuck.
func (f *Fan) Close() {
	for _, q := range f.sinks {
		q.mu.Lock()
		q.closed = true
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

func (q *queue) put(line []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.lines) >= queueSize {
		q.lost++
		return
	}
	q.lines = append(q.lines, line)
	q.changed.Broadcast()
}

// run writes one line after the other.
func (q *queue) run() {
	defer close(q.ended)
	for {
		line, lost, ok := q.next()
		if !ok {
			return
		}
		if lost > 0 {
			_, _ = fmt.Fprintf(q.Writer, "(%d lines were lost: %s was too slow)\n", lost, q.Name)
		}
		// A console that fails has nobody to be told.
		_, _ = q.Writer.Write(line)
		q.mu.Lock()
		q.writing = false
		q.changed.Broadcast()
		q.mu.Unlock()
	}
}

func (q *queue) next() (line []byte, lost int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.lines) == 0 && !q.closed {
		q.changed.Wait()
	}
	if q.closed {
		return nil, 0, false
	}
	line, lost = q.lines[0], q.lost
	q.lines = slices.Delete(q.lines, 0, 1)
	q.lost, q.writing = 0, true
	return line, lost, true
}

// Devices returns the paths of the kernel's active consoles, most of all serial
// lines and the monitor, given the text of /proc/consoles and where devices are.
// A virtual terminal's number is left out: tty0 is whichever is shown.
func Devices(table, dev string) []string {
	var paths []string
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.ContainsAny(name, "/.") {
			continue
		}
		if rest, ok := strings.CutPrefix(name, "tty"); ok && rest != "" && strings.Trim(rest, "0123456789") == "" {
			name = "tty0"
		}
		// A console of the kernel's alone, such as netconsole or earlycon, is
		// no device.
		path := filepath.Join(dev, name)
		if _, err := os.Stat(path); err == nil && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// OpenDevice opens a console for writing. It doesn't become a controlling
// terminal, and a missing carrier on a serial line doesn't hold the open.
func OpenDevice(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the console %s: %w", path, err)
	}
	// Writes may wait: each console has a goroutine of its own.
	if err := unix.SetNonblock(fd, false); err != nil {
		return nil, errors.Join(fmt.Errorf("set up the console %s: %w", path, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), path), nil
}
