// Package frame is how a test that runs as a kernel's first program tells its
// host what it has to tell: frames on a serial port, each of a kind in one
// byte, a length in four bytes, most significant first, and a content of that
// length.
//
// The host reads no more of the port than there are whole frames, so a machine
// that dies in the middle of one is noticed.
package frame

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Kind is what a frame's content is.
type Kind byte

// Kinds of frames.
const (
	// Output is what the test printed.
	Output Kind = 'o'
	// Report is the test's report in JUnit's XML format, whole.
	Report Kind = 'r'
	// Problem is why the test could not be run or reported, as a text.
	Problem Kind = 'p'
	// Status is the test's exit status in one byte. No frame follows it.
	Status Kind = 's'
)

// maxContent is the length of the longest content, in bytes.
const maxContent = 32 << 20

// Write writes a frame in one call to the writer's Write.
func Write(to io.Writer, kind Kind, content []byte) error {
	if len(content) > maxContent {
		return fmt.Errorf("write a frame: its content has %d bytes, more than %d", len(content), maxContent)
	}
	b := make([]byte, 0, 5+len(content))
	b = append(b, byte(kind))
	b = binary.BigEndian.AppendUint32(b, uint32(len(content)))
	if _, err := to.Write(append(b, content...)); err != nil {
		return fmt.Errorf("write a frame: %w", err)
	}
	return nil
}

// Read reads a frame. The error is io.EOF where there is none, and
// io.ErrUnexpectedEOF where one is cut short.
func Read(from io.Reader) (Kind, []byte, error) {
	var header [5]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return 0, nil, io.EOF
		}
		return 0, nil, fmt.Errorf("read a frame: %w", err)
	}
	kind, length := Kind(header[0]), binary.BigEndian.Uint32(header[1:])
	switch {
	case kind != Output && kind != Report && kind != Problem && kind != Status:
		return 0, nil, fmt.Errorf("read a frame: there is no kind %q", byte(kind))
	case length > maxContent:
		return 0, nil, fmt.Errorf("read a frame: its content has %d bytes, more than %d", length, maxContent)
	case kind == Status && length != 1:
		return 0, nil, fmt.Errorf("read a frame: a status has %d bytes", length)
	}
	// What is there decides how much memory is taken, not the length.
	content, err := io.ReadAll(io.LimitReader(from, int64(length)))
	if err == nil && len(content) < int(length) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read a frame: %w", err)
	}
	return kind, content, nil
}

// A Writer makes a frame of this kind of whatever is written to it.
type Writer struct {
	To   io.Writer
	Kind Kind
}

func (w Writer) Write(b []byte) (int, error) {
	if err := Write(w.To, w.Kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
