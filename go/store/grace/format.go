package grace

import (
	"bytes"
	"encoding/binary"
	"io"
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
	maxBlob       = int64(record.Overhead + 2*(4+MaxEntries*entrySize))
)

// MaxEntries is how many entries each list of a record holds. Of more, it holds
// the condemned ones and then the oldest: more unreferenced chunks than that are
// recorded, and so collected, over several runs. A collection must not condemn
// more than that.
const MaxEntries = 2 << 20

// seal returns the blob of a record.
func (k *Keeper) seal(r *Record, random io.Reader) ([]byte, error) {
	content := appendEntries(nil, r.Chunks, MaxEntries)
	return k.sealer.Seal(appendEntries(content, r.Leftovers, MaxEntries), random)
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

// compare orders entries by how badly they are needed, those most needed first.
// A writer must see what is condemned; and the older an entry, the more waiting
// is lost with it.
func (e Entry) compare(other Entry) int {
	switch {
	case e.Condemned && !other.Condemned:
		return -1
	case other.Condemned && !e.Condemned:
		return 1
	}
	return e.Since.Compare(other.Since)
}

// appendEntries appends a list of at most so many entries.
func appendEntries(b []byte, entries map[Key]Entry, most int) []byte {
	sorted := record.Kept(entries, most, Entry.compare)
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
	if count > MaxEntries || int64(len(b)) < count*entrySize {
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
