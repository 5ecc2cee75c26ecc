package lost

import (
	"bytes"
	"encoding/binary"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/record"
)

// The content of a record is a 4-byte count and so many blob IDs, in strictly
// ascending order.
const (
	magic = "PClost01"
	// maxEntries bounds the list. What doesn't fit is written again only after
	// a later repair.
	maxEntries = 2 << 20
	countSize  = 4
	maxBlob    = int64(record.Overhead + countSize + maxEntries*blob.IDSize)
)

// open authenticates a record's blob and parses it.
func (k *Keeper) open(sealed []byte) (Blobs, error) {
	content, err := k.sealer.Open(sealed)
	if err != nil {
		return nil, ErrCorrupt
	}
	return parse(content)
}

// appendIDs appends the content of a record, at most maxEntries long.
func appendIDs(b []byte, blobs Blobs) []byte {
	sorted := record.Kept(blobs, maxEntries, func(_, _ bool) int { return 0 })
	b = binary.BigEndian.AppendUint32(b, uint32(len(sorted)))
	for _, key := range sorted {
		b = append(b, key[:]...)
	}
	return b
}

// parse reads the content of a record.
func parse(content []byte) (Blobs, error) {
	if len(content) < countSize {
		return nil, ErrCorrupt
	}
	count, entries := int64(binary.BigEndian.Uint32(content)), content[countSize:]
	if count > maxEntries || int64(len(entries)) != count*blob.IDSize {
		return nil, ErrCorrupt
	}
	blobs := make(Blobs, count)
	var previous []byte
	for entry := range slices.Chunk(entries, blob.IDSize) {
		if previous != nil && bytes.Compare(entry, previous) <= 0 {
			return nil, ErrCorrupt
		}
		blobs[Key(entry)] = true
		previous = entry
	}
	return blobs, nil
}
