package logs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// version is the format's.
	version = 1
	// maxHeading is how many bytes a segment's first line has at most.
	maxHeading = 4096
)

// kind is what a segment has.
type kind string

const (
	// kindBoot is what was logged during one boot.
	kindBoot kind = "boot"
	// kindPanic is what one boot has found of panics of earlier ones.
	kindPanic kind = "panic"
	// kindCrash is the same of crashes of pcd's, which mustn't hide the last panic.
	kindCrash kind = "crash"
)

// found tells whether it is what a boot has found of an earlier one.
func (k kind) found() bool { return k == kindPanic || k == kindCrash }

// heading is the first line of a segment.
type heading struct {
	Version int  `json:"powercloud_log"`
	Kind    kind `json:"kind"`
	// Boot is the kernel's identifier of the boot that wrote the segment.
	Boot string `json:"boot"`
	// First is where the first segment of this kind and boot began.
	First int64 `json:"first"`
	// Sequence is that of the last record of the kernel's before, as in entry.
	Sequence uint64 `json:"sequence,omitempty"`
	// Dump is the digest of the panic or crash in a segment of these kinds.
	Dump string `json:"dump,omitempty"`
}

// segment is one file of the ring.
type segment struct {
	heading
	// start is where it begins, in bytes since the ring's beginning. It is the file's
	// name.
	start int64
	// size is how many bytes of it are whole lines.
	size int64
}

func (s segment) end() int64 { return s.start + s.size }

// suffix ends the names of segments.
const suffix = ".log"

// segmentName returns a segment's file name: its start in 19 digits.
func segmentName(start int64) string { return fmt.Sprintf("%019d%s", start, suffix) }

// parseName reads what segmentName returns.
func parseName(name string) (int64, bool) {
	digits, found := strings.CutSuffix(name, suffix)
	if !found || len(digits) != 19 {
		return 0, false
	}
	start, err := strconv.ParseInt(digits, 10, 64)
	return start, err == nil && start >= 0
}

// parseHeading reads a segment's first line, without its line feed.
func parseHeading(line []byte) (heading, error) {
	var h heading
	if err := json.Unmarshal(line, &h); err != nil {
		return heading{}, fmt.Errorf("%w: %w", errLine, err)
	}
	if h.Version != version || h.Kind != kindBoot && !h.Kind.found() || h.Boot == "" || h.First < 0 {
		return heading{}, fmt.Errorf("%w: it doesn't begin a segment of version %d", errLine, version)
	}
	return h, nil
}

// errCut is what readHeading returns for a segment whose creation was cut off.
var errCut = errors.New("not even its first line was written")

// readHeading returns the segment in a file, whose size is the file's. One that can't
// be read, or that another version wrote, has no kind.
func readHeading(folder, name string, start int64) (segment, error) {
	info, err := os.Stat(filepath.Join(folder, name))
	if err != nil {
		return segment{}, err
	}
	s := segment{start: start, size: info.Size()}
	first, err := readAt(folder, start, 0, min(s.size, maxHeading))
	if err != nil {
		return s, nil
	}
	line, _, found := bytes.Cut(first, []byte("\n"))
	if !found {
		return segment{}, errCut
	}
	if h, err := parseHeading(line); err == nil {
		s.heading = h
	}
	return s, nil
}

// readAt reads bytes of a segment.
func readAt(folder string, start, from, size int64) ([]byte, error) {
	f, err := os.Open(filepath.Join(folder, segmentName(start)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	b := make([]byte, size)
	if _, err := f.ReadAt(b, from); err != nil {
		return nil, err
	}
	return b, nil
}

// wholeLines returns how many bytes at the beginning of a segment end with a line that
// is understood, and the last sequence in it.
func wholeLines(content []byte) (size int64, sequence uint64) {
	at := int64(0)
	for line := range bytes.Lines(content) {
		at += int64(len(line))
		if line[len(line)-1] != '\n' {
			break
		}
		if at == int64(len(line)) {
			size = at
			continue
		}
		if e, err := decodeEntry(line[:len(line)-1]); err == nil {
			size, sequence = at, max(sequence, e.Sequence)
		}
	}
	return size, sequence
}

// list returns the ring's segments in their order. Those whose creation was cut off
// are removed.
func list(folder string) ([]segment, error) {
	names, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var all []segment
	for _, entry := range names {
		if strings.HasSuffix(entry.Name(), suffix+unfinished) {
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
				return nil, err
			}
			continue
		}
		start, ok := parseName(entry.Name())
		if !ok || !entry.Type().IsRegular() {
			continue
		}
		s, err := readHeading(folder, entry.Name(), start)
		if errors.Is(err, errCut) {
			err = os.Remove(filepath.Join(folder, entry.Name()))
		} else if err == nil {
			all = append(all, s)
		}
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
