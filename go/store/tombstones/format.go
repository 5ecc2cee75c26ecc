package tombstones

import (
	"bytes"
	"encoding/binary"
	"slices"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/record"
)

// Both records have the same content: a 4-byte count and so many entries, in
// strictly ascending order of their keys: key (32), version: time in nanoseconds
// (8) and tie-breaker (16), date in nanoseconds (8).
const (
	magicSeen     = "PCtombs1"
	magicRemovals = "PCremov1"

	countSize = 4
	tieSize   = 16
	entrySize = blob.IDSize + 8 + tieSize + 8
)

// MaxSeen is how many entries the record of tombstones at every location holds.
const MaxSeen = 1 << 20

// MaxRemovals is how many entries the record of removals holds: every writer reads
// it, so it is kept small.
const MaxRemovals = 4096

func maxBlob(entries int) int64 { return int64(record.Overhead + countSize + entries*entrySize) }

// appendEntries appends the content of a record of at most so many entries.
func appendEntries(b []byte, entries Entries, most int) []byte {
	sorted := record.Kept(entries, most, func(x, y Entry) int { return x.Since.Compare(y.Since) })
	b = binary.BigEndian.AppendUint32(b, uint32(len(sorted)))
	for _, key := range sorted {
		entry := entries[key]
		b = append(b, key[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(entry.Version.Time))
		b = append(b, entry.Version.Tie[:]...)
		b = binary.BigEndian.AppendUint64(b, uint64(entry.Since.UnixNano()))
	}
	return b
}

// parse reads the content of a record of at most so many entries.
func parse(content []byte, most int) (Entries, error) {
	if len(content) < countSize {
		return nil, ErrCorrupt
	}
	count, list := int64(binary.BigEndian.Uint32(content)), content[countSize:]
	if count > int64(most) || int64(len(list)) != count*entrySize {
		return nil, ErrCorrupt
	}
	entries := make(Entries, count)
	var previous []byte
	for b := range slices.Chunk(list, entrySize) {
		if previous != nil && bytes.Compare(b[:blob.IDSize], previous) <= 0 {
			return nil, ErrCorrupt
		}
		previous = b[:blob.IDSize]
		version := manifest.Version{Time: int64(binary.BigEndian.Uint64(b[blob.IDSize:]))}
		copy(version.Tie[:], b[blob.IDSize+8:])
		entries[Key(b)] = Entry{
			Version: version,
			Since:   time.Unix(0, int64(binary.BigEndian.Uint64(b[blob.IDSize+8+tieSize:]))),
		}
	}
	return entries, nil
}
