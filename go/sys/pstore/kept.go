package pstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

const (
	// KeptName is the name of the file, in the folder of PID 1's that is in memory,
	// with what Encode makes of the dumps that this boot has found.
	KeptName = "panics.json"
	// maxKept is how many bytes of text Encode keeps.
	maxKept = 1 << 20
	// maxKeptFile is how many bytes of a file ReadKept reads: each byte of text takes
	// two at most, and there is little else.
	maxKeptFile = 4 << 20
)

// Encode writes dumps, oldest first, for ReadKept: the newest, together at most 1 MiB of
// text. The store itself is emptied later on.
func Encode(dumps []Dump) ([]byte, error) {
	size, first := 0, len(dumps)
	for first > 0 && size+len(dumps[first-1].Text) <= maxKept {
		first--
		size += len(dumps[first].Text)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(dumps[first:]); err != nil {
		return nil, fmt.Errorf("write down what the kernel saved: %w", err)
	}
	return b.Bytes(), nil
}

// ReadKept reads a file with what Encode made. A file that isn't there has none.
func ReadKept(path string) ([]Dump, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what earlier boots ended with: %w", err)
	}
	defer func() { _ = f.Close() }()
	var dumps []Dump
	if err := json.NewDecoder(io.LimitReader(f, maxKeptFile)).Decode(&dumps); err != nil {
		return nil, fmt.Errorf("read what earlier boots ended with, in %s: %w", path, err)
	}
	return dumps, nil
}

// Written returns when the dump was written, to the second, by the clock that the
// machine had then. Only EFI's back end says so.
func (d Dump) Written() (time.Time, bool) {
	if len(d.Files) == 0 || !strings.HasPrefix(d.Files[0], efiPrefix) || d.ID == 0 || d.ID > 1<<33 {
		return time.Time{}, false
	}
	return time.Unix(int64(d.ID), 0).UTC(), true
}
