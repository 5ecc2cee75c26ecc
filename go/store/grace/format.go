package grace

import (
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"slices"
	"time"

	"powercloud.unidatum.com/go/store/record"
)

// The content of a grace record is two lists, of chunks and of leftovers, each a
// 4-byte count and so many entries: key (32), date in nanoseconds (8), flags
// (1). Entries are in strictly ascending order of their keys.
const (
	magic         = "PCgrace1"
	entrySize     = 32 + 8 + 1
	flagCondemned = 1
	// maxEntries bounds each list. More unreferenced chunks than that are
	// recorded, and so collected, over several runs.
	maxEntries = 2 << 20
	maxBlob    = int64(record.Overhead + 2*(4+maxEntries*entrySize))
)

// seal returns the blob of a record.
func (k *Keeper) seal(record *Record, random io.Reader) ([]byte, error) {
	content := appendEntries(nil, record.Chunks)
	return k.sealer.Seal(appendEntries(content, record.Leftovers), random)
}

// open authenticates a record's blob and parses it.
func (k *Keeper) open(sealed []byte) (*Record, error) {
	content, err := k.sealer.Open(sealed)
	if err != nil {
		return nil, ErrCorrupt
	}
	return parse(content)
}

// parse reads the content of a record.
func parse(content []byte) (*Record, error) {
	chunks, rest, err := parseEntries(content)
	if err != nil {
		return nil, err
	}
	leftovers, rest, err := parseEntries(rest)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, ErrCorrupt
	}
	return &Record{Chunks: chunks, Leftovers: leftovers}, nil
}

// appendEntries appends a list, at most maxEntries long.
func appendEntries(b []byte, entries map[Key]Entry) []byte {
	sorted := slices.SortedFunc(maps.Keys(entries), func(x, y Key) int { return bytes.Compare(x[:], y[:]) })
	if len(sorted) > maxEntries {
		sorted = sorted[:maxEntries]
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(sorted)))
	for _, key := range sorted {
		entry := entries[key]
		var flags byte
		if entry.Condemned {
			flags |= flagCondemned
		}
		b = append(b, key[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(entry.Since.UnixNano()))
		b = append(b, flags)
	}
	return b
}

// parseEntries reads a list and returns what follows it.
func parseEntries(b []byte) (map[Key]Entry, []byte, error) {
	if len(b) < 4 {
		return nil, nil, ErrCorrupt
	}
	count, b := int64(binary.BigEndian.Uint32(b)), b[4:]
	if count > maxEntries || int64(len(b)) < count*entrySize {
		return nil, nil, ErrCorrupt
	}
	entries := make(map[Key]Entry, count)
	var previous Key
	for i := range count {
		key := Key(b[:32])
		if i > 0 && bytes.Compare(key[:], previous[:]) <= 0 {
			return nil, nil, ErrCorrupt
		}
		flags := b[40]
		if flags&^flagCondemned != 0 {
			return nil, nil, ErrCorrupt
		}
		entries[key] = Entry{
			Since:     time.Unix(0, int64(binary.BigEndian.Uint64(b[32:]))),
			Condemned: flags&flagCondemned != 0,
		}
		previous, b = key, b[entrySize:]
	}
	return entries, b, nil
}
