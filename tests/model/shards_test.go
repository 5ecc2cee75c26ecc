package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

// What follows reads the records of docs/formats.md without the code that is tested,
// and knows a blob again by the sums of its data shards instead of decoding it.

const (
	shardMagic  = "PCshard1"
	shardHeader = 60
)

// stored has the blobs that were ever written to an erasure-coded set. Its methods may
// be called from several goroutines at once.
type stored struct {
	mu    sync.Mutex
	blobs map[storedKey][]byte
}

type storedKey struct {
	name blob.Name
	size int64
	// sums is the hash of the sums of the data shards.
	sums [sha256.Size]byte
}

// note enters a blob.
func (s *stored) note(l *member, name blob.Name, data []byte) {
	shard := int(l.shardSize(int64(len(data))))
	padded := make([]byte, shard*l.data)
	copy(padded, data)
	hash := sha256.New()
	for i := range l.data {
		sum := sha256.Sum256(padded[i*shard:][:shard])
		hash.Write(sum[:])
	}
	key := storedKey{name: name, size: int64(len(data))}
	hash.Sum(key.sums[:0])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.blobs[key] == nil {
		s.blobs[key] = append(make([]byte, 0, len(data)), data...)
	}
}

func (s *stored) find(key storedKey) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.blobs[key]
}

// shard is a record that a part holds.
type shard struct {
	id       [sha256.Size]byte
	index    int
	sequence uint64
	intact   bool
	// content is the blob that it is a shard of, or nil if nobody wrote that.
	content []byte
}

func (l layout) shardSize(size int64) int64 { return (size + int64(l.data) - 1) / int64(l.data) }

func (l layout) recordSize(size int64, index int) int64 {
	excess := l.shardSize(size)*int64(l.data) - size
	return int64(shardHeader+sha256.Size*l.total) + l.shardSize(size) + excess*int64(index)%257
}

// shards returns the records that a part holds, or those up to one that isn't a record
// of the blob, and false.
func (l *member) shards(name blob.Name, data []byte) ([]shard, bool) {
	var found []shard
	for len(data) > 0 {
		header := shardHeader + sha256.Size*l.total
		if len(data) < header || string(data[:8]) != shardMagic || blob.Kind(data[8]) != name.Kind ||
			!bytes.Equal(data[9:41], name.ID[:]) || int(data[41]) != l.data || int(data[42]) != l.total || int(data[43]) >= l.total {
			return found, false
		}
		size := int64(binary.BigEndian.Uint64(data[52:]))
		s := shard{index: int(data[43]), sequence: binary.BigEndian.Uint64(data[44:])}
		length := l.recordSize(size, s.index)
		if size < 0 || size > 1<<40 || int64(len(data)) < length {
			return found, false
		}
		if padding := data[header+int(l.shardSize(size)) : length]; !bytes.Equal(padding, make([]byte, len(padding))) {
			return found, false
		}
		sums := data[shardHeader:header]
		sum := sha256.Sum256(data[header:][:l.shardSize(size)])
		s.intact = bytes.Equal(sum[:], sums[s.index*sha256.Size:][:sha256.Size])
		s.content = l.stored.find(storedKey{name, size, sha256.Sum256(sums[:l.data*sha256.Size])})
		hash := sha256.New()
		hash.Write(data[:43])
		hash.Write(data[44:header])
		hash.Sum(s.id[:0])
		found = append(found, s)
		data = data[length:]
	}
	return found, len(found) > 0
}

// vouched is a version of a blob with the parts that have a shard of it which no other
// part has.
type vouched struct {
	shard
	parts   places
	indices places
}

// tally is what the parts of a set hold of a blob.
type tally struct {
	data     int
	versions []*vouched
	// unusable counts the parts that hold something that is no shard.
	unusable int
}

// tally counts the shards that parts hold. contents returns what a part may turn out
// to hold: a shard counts that is in all of it.
func (l *member) tally(name blob.Name, contents func(*place) [][]byte) *tally {
	t := &tally{data: l.data}
	for _, p := range l.parts {
		var certain []shard
		unusable := false
		for i, data := range contents(p) {
			found, ok := l.shards(name, data)
			unusable = unusable || !ok && data != nil
			if i == 0 {
				certain = found
			} else {
				certain = common(certain, found)
			}
		}
		for _, s := range certain {
			if s.intact {
				t.enter(p.index, s)
			}
			unusable = unusable || !s.intact
		}
		if unusable {
			t.unusable++
		}
	}
	return t
}

// vouching returns how many parts hold a version of a blob.
func (l *member) vouching(name blob.Name, id [sha256.Size]byte) int {
	for _, v := range l.tally(name, func(p *place) [][]byte { return [][]byte{p.peek(name)} }).versions {
		if v.id == id {
			return v.parts.count()
		}
	}
	return 0
}

// common returns the shards that are in both.
func common(a, b []shard) []shard {
	var both []shard
	for _, s := range a {
		if has(b, s.id) {
			both = append(both, s)
		}
	}
	return both
}

func has(shards []shard, id [sha256.Size]byte) bool {
	for _, s := range shards {
		if s.id == id {
			return true
		}
	}
	return false
}

func (t *tally) enter(part int, s shard) {
	for _, v := range t.versions {
		if v.id != s.id {
			continue
		}
		if !v.indices.has(s.index) {
			v.parts, v.indices = v.parts.with(part), v.indices.with(s.index)
		}
		return
	}
	t.versions = append(t.versions, &vouched{shard: s, parts: only(part), indices: only(s.index)})
}

// best returns the version that a reader takes, or nil: the newest that can be put
// together and, where a single part is enough for that, one that two agree on, if
// the other can't have been acknowledged.
func (t *tally) best() *vouched {
	var best *vouched
	for _, v := range t.versions {
		if v.parts.count() >= t.data && (best == nil || t.before(v, best)) {
			best = v
		}
	}
	return best
}

func (t *tally) before(a, b *vouched) bool {
	x, y := t.credible(a), t.credible(b)
	switch {
	case x != y:
		return x
	case a.sequence != b.sequence:
		return a.sequence > b.sequence
	case a.parts.count() != b.parts.count():
		return a.parts.count() > b.parts.count()
	}
	return bytes.Compare(a.id[:], b.id[:]) > 0
}

func (t *tally) credible(v *vouched) bool { return v.parts.count()+t.unusable >= max(t.data, 2) }

// forge has a part make up a version: its shard of one that there was, under a
// sequence that comes after all that it holds.
func (l *member) forge(former, current []byte) []byte {
	header := shardHeader + sha256.Size*l.total
	if len(former) < header || len(current) < header {
		return current
	}
	size := int64(binary.BigEndian.Uint64(former[52:]))
	length := l.recordSize(size, int(former[43]))
	if int64(len(former)) < length {
		return current
	}
	forged := append(make([]byte, 0, len(former)+len(current)), former[:length]...)
	binary.BigEndian.PutUint64(forged[44:], binary.BigEndian.Uint64(current[44:])+1)
	return append(forged, current...)
}
