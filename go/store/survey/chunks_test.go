package survey

import (
	"math/rand/v2"
	"testing"
)

// keyOf returns the nth of a sequence of keys that look random.
func keyOf(n uint64) (key Key) {
	source := rand.NewPCG(n, 1)
	for i := range key {
		key[i] = byte(source.Uint64())
	}
	return key
}

func TestChunksThatObjectsShare(t *testing.T) {
	const unique, times = 5000, 4
	var table Chunks
	for range times {
		for n := range uint64(unique) {
			table.add(Chunk{key: keyOf(n), size: uint32(n)})
		}
	}
	table.sort()
	if table.Len() != unique {
		t.Errorf("%d chunks, want %d", table.Len(), unique)
	}
	seen, room := 0, 0
	for key, c := range table.All() {
		if table.Find(key) != c {
			t.Fatal("a chunk isn't found by its key")
		}
		seen++
	}
	for _, shard := range table.shards {
		room += cap(shard)
	}
	if seen != unique || room > 2*unique+256*32 {
		t.Errorf("%d chunks in the room of %d", seen, room)
	}
	for n := range uint64(unique) {
		if c := table.Find(keyOf(n)); c == nil || c.Size() != int(n) {
			t.Fatalf("chunk %d is %+v", n, c)
		}
	}
	if table.Find(keyOf(unique)) != nil {
		t.Error("a chunk was found that wasn't added")
	}
}

func TestMoreLooseChunksThanAreKept(t *testing.T) {
	var table Loose
	for first := range byte(3) {
		var group []looseChunk
		for n := range byte(4) {
			group = append(group, looseChunk{Key{first, 9 - n}, 1}, looseChunk{Key{first, 9 - n}, 2})
		}
		table.addAll(group, first, 6)
	}
	if table.Len() != 12 {
		t.Errorf("%d chunks were counted, want 12", table.Len())
	}
	kept := 0
	for _, where := range table.All() {
		kept++
		if where != 3 {
			t.Errorf("it is at %b", where)
		}
	}
	if kept != 6 || table.Find(Key{0, 9}) != 3 || table.Find(Key{1, 6}) != 3 || table.Find(Key{2, 6}) != 0 {
		t.Errorf("%d were kept", kept)
	}
}
