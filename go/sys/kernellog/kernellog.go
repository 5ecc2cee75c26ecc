// Package kernellog writes lines into the kernel's log and reads it. After a panic,
// pstore has its end.
package kernellog

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

// Path is the kernel's log as a device.
const Path = "/dev/kmsg"

// Priority is how urgent a line is: syslog's numbers. The kernel prints lines on
// the consoles whose number is below its console log level.
type Priority uint8

// The priorities that are used.
const (
	// Emergency is printed on every console, whatever its level.
	Emergency Priority = 0
	Error     Priority = 3
	Info      Priority = 6
	// Debug stays off the consoles but not out of pstore.
	Debug Priority = 7
)

const (
	// daemon is syslog's facility "system daemons". The kernel refuses its own,
	// 0, to programs.
	daemon = 3
	// MaxLine is how many bytes of a line are kept. The kernel takes records of
	// 1,024 bytes, prefix included, and refuses longer ones.
	MaxLine = 900
)

// Writer writes lines. Each Write is complete lines; a longer line is cut into
// several records. It never waits: the kernel's log is a ring.
type Writer struct {
	file     *os.File
	priority Priority
	tag      string
}

// Open opens the kernel's log for a program, which is named in each line.
func Open(path, tag string, priority Priority) (*Writer, error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return nil, fmt.Errorf("open the kernel's log: %w", err)
	}
	return &Writer{file: file, priority: priority, tag: tag}, nil
}

// Write writes lines with the writer's priority.
func (w *Writer) Write(lines []byte) (int, error) {
	for line := range bytes.Lines(lines) {
		if err := w.Line(w.priority, string(line)); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

// Line writes one line with a priority.
func (w *Writer) Line(priority Priority, line string) error {
	for _, record := range records(priority, w.tag, line) {
		// One record is one write.
		if _, err := w.file.WriteString(record); err != nil {
			return fmt.Errorf("write to the kernel's log: %w", err)
		}
	}
	return nil
}

// Close closes the log.
func (w *Writer) Close() error { return w.file.Close() }

// records makes of a line what the kernel takes. Without a line feed at its end,
// the kernel would join a record with the next.
func records(priority Priority, tag, line string) []string {
	line = strings.TrimRight(line, "\r\n")
	var all []string
	for first := true; first || line != ""; first = false {
		part := line[:min(len(line), MaxLine)]
		line = line[len(part):]
		all = append(all, fmt.Sprintf("<%d>%s: %s\n", daemon<<3|priority, tag, part))
	}
	return all
}
