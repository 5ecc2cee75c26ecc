package ec

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// The format of what a part stores, which docs/formats.md describes.
const (
	magic = "PCshard1"
	// indexOffset is where a header has the shard's index, the only field that
	// differs between the shards of one version.
	indexOffset = 43
	fixedHeader = 60
	sumSize     = sha256.Size

	// maxRecords is how many versions a part may hold of one blob.
	maxRecords  = 3
	maxTotal    = 255
	maxSequence = 1<<63 - 1
	// maxSize bounds a blob, in bytes; far above what any store writes.
	maxSize = 1 << 40
	// modulus is a prime above every index and number of data shards.
	modulus = 257
)

var (
	errFormat = errors.New("it is not a shard of this blob")
	errLayout = errors.New("it is a shard of a set with another K or number of parts")
)

// layout is how many shards a blob becomes, and how many of them rebuild it.
type layout struct{ data, total int }

// headerSize is the length of a record's header in bytes.
func (l layout) headerSize() int { return fixedHeader + sumSize*l.total }

// shardSize is the length of each shard of a blob of that size, in bytes.
func (l layout) shardSize(size int64) int64 {
	return (size + int64(l.data) - 1) / int64(l.data)
}

// padding is how many zeros follow the shard with an index. The lengths of any
// two shards tell the blob's size by that, without reading them.
func (l layout) padding(size int64, index int) int64 {
	excess := l.shardSize(size)*int64(l.data) - size
	return excess * int64(index) % modulus
}

// recordSize is the length of the record of a shard in bytes.
func (l layout) recordSize(size int64, index int) int64 {
	return int64(l.headerSize()) + l.shardSize(size) + l.padding(size, index)
}

// versionID identifies a version of a blob: the hash of what its shards' headers
// have in common.
type versionID [sha256.Size]byte

// descriptor is what the shards of one version of a blob have in common.
type descriptor struct {
	name blob.Name
	layout
	// sequence orders versions, the newest highest.
	sequence uint64
	// size is the blob's, in bytes.
	size int64
	// sums has the SHA-256 of every shard.
	sums []byte
}

func (d *descriptor) sum(index int) []byte { return d.sums[index*sumSize:][:sumSize] }

// appendHeader appends the header of the shard with an index.
func (d *descriptor) appendHeader(dst []byte, index int) []byte {
	dst = append(dst, magic...)
	dst = append(dst, byte(d.name.Kind))
	dst = append(dst, d.name.ID[:]...)
	dst = append(dst, byte(d.data), byte(d.total), byte(index))
	dst = binary.BigEndian.AppendUint64(dst, d.sequence)
	dst = binary.BigEndian.AppendUint64(dst, uint64(d.size))
	return append(dst, d.sums...)
}

// id returns the version's ID.
func (d *descriptor) id() versionID { return headerID(d.appendHeader(nil, 0)) }

// headerID returns the ID of the version that a shard's header belongs to.
func headerID(header []byte) versionID {
	h := sha256.New()
	h.Write(header[:indexOffset])
	h.Write(header[indexOffset+1:])
	var id versionID
	h.Sum(id[:0])
	return id
}

// record is one version's shard as a part holds it.
type record struct {
	descriptor
	id    versionID
	index int
	// raw is the whole record, payload the shard in it. Nobody has compared the
	// payload with its sum yet.
	raw, payload []byte
}

// newer reports whether a version comes before another: it has a higher sequence
// or, with the same, a higher ID.
func newer(sequence uint64, id versionID, than uint64, other versionID) bool {
	if sequence != than {
		return sequence > than
	}
	return bytes.Compare(id[:], other[:]) > 0
}

// parseRecords parses what a part holds of a blob: one to maxRecords records, the
// newest version first. The records refer to data. With an error, it returns those that
// come before what is wrong.
func parseRecords(data []byte, name blob.Name, l layout) ([]record, error) {
	var records []record
	for len(data) > 0 {
		if len(records) == maxRecords {
			return records, fmt.Errorf("it has more than %d versions: %w", maxRecords, errFormat)
		}
		r, err := parseRecord(data, name, l)
		if err != nil {
			return records, err
		}
		if n := len(records); n > 0 && !newer(records[n-1].sequence, records[n-1].id, r.sequence, r.id) {
			return records, fmt.Errorf("its versions are out of order: %w", errFormat)
		}
		records = append(records, r)
		data = data[len(r.raw):]
	}
	if len(records) == 0 {
		return nil, fmt.Errorf("it is empty: %w", errFormat)
	}
	return records, nil
}

// parseRecord parses the record that data begins with.
func parseRecord(data []byte, name blob.Name, l layout) (record, error) {
	if len(data) < fixedHeader || string(data[:len(magic)]) != magic {
		return record{}, errFormat
	}
	if blob.Kind(data[8]) != name.Kind || [blob.IDSize]byte(data[9:41]) != name.ID {
		return record{}, fmt.Errorf("it belongs to another blob: %w", errFormat)
	}
	r := record{index: int(data[indexOffset])}
	r.name, r.layout = name, layout{int(data[41]), int(data[42])}
	r.sequence = binary.BigEndian.Uint64(data[44:])
	size := binary.BigEndian.Uint64(data[52:])
	switch {
	case r.layout != l:
		return record{}, fmt.Errorf("its K is %d and there are %d parts: %w", r.data, r.total, errLayout)
	case r.index >= r.total, r.sequence > maxSequence, size > maxSize:
		return record{}, errFormat
	}
	r.size = int64(size)
	header, whole := l.headerSize(), l.recordSize(r.size, r.index)
	if int64(len(data)) < whole {
		return record{}, fmt.Errorf("it was cut short: %w", errFormat)
	}
	r.raw = data[:whole:whole]
	end := int64(header) + l.shardSize(r.size)
	r.sums, r.payload = r.raw[fixedHeader:header:header], r.raw[header:end:end]
	if !allZero(r.raw[end:]) {
		return record{}, fmt.Errorf("its padding is not zero: %w", errFormat)
	}
	r.id = headerID(r.raw[:header])
	return r, nil
}

// allZero reports whether there is no byte other than 0.
func allZero(data []byte) bool {
	for _, b := range data {
		if b != 0 {
			return false
		}
	}
	return true
}

// intact reports whether the payload is the shard that the header describes.
func (r *record) intact() bool {
	sum := sha256.Sum256(r.payload)
	return bytes.Equal(sum[:], r.sum(r.index))
}

// sizeFromLengths returns the size of the blob of which shards of these lengths are
// stored, by their index; a negative length is of a shard that isn't there. It
// returns the number of shards that agree on that size, and false if none do or
// as many agree on another.
func (l layout) sizeFromLengths(lengths []int64) (size int64, agree int, ok bool) {
	seen := map[int64]int{}
	for i := range lengths {
		if lengths[i] < 0 {
			continue
		}
		if l.data == 1 {
			seen[lengths[i]-int64(l.headerSize())]++
			continue
		}
		// All pairs only when the first one doesn't explain the others.
		for j := i + 1; j < len(lengths); j++ {
			if lengths[j] < 0 {
				continue
			}
			candidate, ok := l.sizeFromPair(i, lengths[i], j, lengths[j])
			if !ok {
				continue
			}
			if _, known := seen[candidate]; known {
				continue
			}
			seen[candidate] = l.agreeing(candidate, lengths)
			if present := countPresent(lengths); seen[candidate] == present {
				return candidate, present, true
			}
		}
	}
	for candidate, n := range seen {
		switch {
		case candidate < 0 || candidate > maxSize:
		case n > agree:
			size, agree, ok = candidate, n, true
		case n == agree:
			ok = false
		}
	}
	return size, agree, ok
}

// sizeFromPair returns the size of a blob from the lengths of two of its shards.
func (l layout) sizeFromPair(i int, a int64, j int, b int64) (size int64, ok bool) {
	// excess * (j-i) = b-a, modulo the modulus.
	difference := ((b-a)%modulus + modulus) % modulus
	excess := difference * inverse(int64(j-i)) % modulus
	if excess >= int64(l.data) {
		return 0, false
	}
	shard := a - int64(l.headerSize()) - excess*int64(i)%modulus
	size = shard*int64(l.data) - excess
	if shard < 0 || size < 0 || size > maxSize {
		return 0, false
	}
	return size, l.recordSize(size, i) == a && l.recordSize(size, j) == b
}

// inverse returns the inverse of a number from 1 to modulus-1, by Fermat.
func inverse(n int64) int64 {
	result, power := int64(1), n%modulus
	for exponent := modulus - 2; exponent > 0; exponent >>= 1 {
		if exponent&1 == 1 {
			result = result * power % modulus
		}
		power = power * power % modulus
	}
	return result
}

// agreeing counts the shards whose length is that of a blob of a size.
func (l layout) agreeing(size int64, lengths []int64) int {
	n := 0
	for i, length := range lengths {
		if length >= 0 && l.recordSize(size, i) == length {
			n++
		}
	}
	return n
}

func countPresent(lengths []int64) int {
	n := 0
	for _, length := range lengths {
		if length >= 0 {
			n++
		}
	}
	return n
}
