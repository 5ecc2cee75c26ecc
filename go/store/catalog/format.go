package catalog

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/store/manifest"
)

// A shard is stored as a magic, a nonce, and its content sealed with
// XChaCha20-Poly1305; the tag also covers the magic and the shard's first byte.
// The content begins with the marks of sections, in ascending order of locations:
//
//	1  their number, then for each
//	    8  location
//	   16  mark of its section
//
// A sequence of entries follows, in ascending order of their IDs:
//
//	32  blob ID
//	 1  number of copies, then for each
//	     8  location
//	    16  version mark
//	     8  version: time, nanoseconds since 1970
//	    16  version: tie-breaker
//	 4  size of the manifest's blob, then the blob
//
// Integers are big-endian.
const (
	magic = "PCcatlg2"
	// maxShard bounds a shard's file, in bytes.
	maxShard = 512 << 20
	// maxCopies bounds the copies of a manifest that are known.
	maxCopies = 255

	sectionSize = len(LocationKey{}) + len(markHash{})
	copySize    = sectionSize + 8 + 16
)

var errMalformed = errors.New("catalog is malformed")

func (c *Catalog) seal(first byte, content []byte) ([]byte, error) {
	start := make([]byte, len(magic)+chacha20poly1305.NonceSizeX, len(magic)+chacha20poly1305.NonceSizeX+len(content)+chacha20poly1305.Overhead)
	copy(start, magic)
	nonce := start[len(magic):]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("reading random bytes for the catalog: %w", err)
	}
	return c.aead.Seal(start, nonce, content, associated(first)), nil
}

// open authenticates a shard's file and returns its content, which shares the
// file's memory.
func (c *Catalog) open(first byte, sealed []byte) ([]byte, error) {
	const start = len(magic) + chacha20poly1305.NonceSizeX
	if len(sealed) < start || !bytes.HasPrefix(sealed, []byte(magic)) {
		return nil, errMalformed
	}
	ciphertext := sealed[start:]
	content, err := c.aead.Open(ciphertext[:0], sealed[len(magic):start], ciphertext, associated(first))
	if err != nil {
		return nil, errMalformed
	}
	return content, nil
}

func associated(first byte) []byte { return append([]byte(magic), first) }

// appendShard appends the content of a shard.
func appendShard(b []byte, entries map[Key]*entry, sections map[LocationKey]markHash) []byte {
	b = append(b, byte(len(sections)))
	locations := slices.SortedFunc(maps.Keys(sections), func(x, y LocationKey) int { return bytes.Compare(x[:], y[:]) })
	for _, location := range locations {
		mark := sections[location]
		b = append(b, location[:]...)
		b = append(b, mark[:]...)
	}
	return appendEntries(b, entries)
}

func appendEntries(b []byte, entries map[Key]*entry) []byte {
	ids := slices.SortedFunc(maps.Keys(entries), func(x, y Key) int { return bytes.Compare(x[:], y[:]) })
	for _, id := range ids {
		e := entries[id]
		b = append(b, id[:]...)
		b = append(b, byte(len(e.copies)))
		for _, c := range e.copies {
			b = append(b, c.location[:]...)
			b = append(b, c.mark[:]...)
			b = binary.BigEndian.AppendUint64(b, uint64(c.version.Time))
			b = append(b, c.version.Tie[:]...)
		}
		b = binary.BigEndian.AppendUint32(b, uint32(len(e.blob)))
		b = append(b, e.blob...)
	}
	return b
}

// parse reads the content of a shard. The entries' blobs share its memory.
func parse(b []byte) (map[Key]*entry, map[LocationKey]markHash, error) {
	sections, b, err := parseSections(b)
	if err != nil {
		return nil, nil, err
	}
	entries, err := parseEntries(b)
	return entries, sections, err
}

// parseSections reads the marks of sections and returns what follows them.
func parseSections(b []byte) (map[LocationKey]markHash, []byte, error) {
	if len(b) == 0 || len(b)-1 < int(b[0])*sectionSize {
		return nil, nil, errMalformed
	}
	count := int(b[0])
	b = b[1:]
	sections := make(map[LocationKey]markHash, count)
	var last LocationKey
	for i := range count {
		location := LocationKey(b)
		if i > 0 && bytes.Compare(location[:], last[:]) <= 0 {
			return nil, nil, errMalformed
		}
		last = location
		sections[location] = markHash(b[len(location):])
		b = b[sectionSize:]
	}
	return sections, b, nil
}

func parseEntries(b []byte) (map[Key]*entry, error) {
	entries := map[Key]*entry{}
	var last Key
	for len(b) > 0 {
		if len(b) < len(Key{})+1 {
			return nil, errMalformed
		}
		id, count := Key(b), int(b[len(Key{})])
		b = b[len(Key{})+1:]
		if len(entries) > 0 && bytes.Compare(id[:], last[:]) <= 0 || len(b) < count*copySize+4 {
			return nil, errMalformed
		}
		last = id
		e := &entry{copies: make([]copyState, count)}
		for i := range e.copies {
			e.copies[i] = parseCopy(b[:copySize])
			b = b[copySize:]
		}
		size := binary.BigEndian.Uint32(b)
		b = b[4:]
		if size == 0 || size > MaxManifest || int(size) > len(b) {
			return nil, errMalformed
		}
		e.blob = b[:size:size]
		b = b[size:]
		entries[id] = e
	}
	return entries, nil
}

// parseCopy reads a copy's copySize bytes.
func parseCopy(b []byte) copyState {
	var c copyState
	b = b[copy(c.location[:], b):]
	b = b[copy(c.mark[:], b):]
	c.version = manifest.Version{Time: int64(binary.BigEndian.Uint64(b))}
	copy(c.version.Tie[:], b[8:])
	return c
}
