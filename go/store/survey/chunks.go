package survey

import (
	"bytes"
	"context"
	"iter"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/chunk"
)

// maxLoose is how many unreferenced chunks are kept; more are only counted. A
// location can list any number, and a collection can delete no more in one run.
const maxLoose = 2 << 20

// Chunk is a chunk that some newest manifest needs.
type Chunk struct {
	key Key
	Ref chunk.Ref
	// size is that of its blob, in bytes.
	size uint32
	// Present are the locations that have a copy of the right size.
	Present Locations
	// Corrupt are the locations whose copy has a wrong size, or failed
	// authentication.
	Corrupt Locations
}

// Size returns the size of the chunk's blob, in bytes.
func (c *Chunk) Size() int { return int(c.size) }

// Chunks is the chunks that newest manifests need, by their blob IDs. It takes 88
// bytes for each, and up to a quarter more.
type Chunks struct {
	// shards are by the first byte of the IDs, and sorted once all are added.
	shards [256][]Chunk
}

// Len returns the number of chunks.
func (t *Chunks) Len() int {
	n := 0
	for _, shard := range t.shards {
		n += len(shard)
	}
	return n
}

// Find returns the chunk with a blob ID, or nil.
func (t *Chunks) Find(key Key) *Chunk {
	shard := t.shards[key[0]]
	i, ok := slices.BinarySearchFunc(shard, key, func(c Chunk, key Key) int { return bytes.Compare(c.key[:], key[:]) })
	if !ok {
		return nil
	}
	return &shard[i]
}

// All returns the chunks with their blob IDs, in ascending order.
func (t *Chunks) All() iter.Seq2[Key, *Chunk] {
	return func(yield func(Key, *Chunk) bool) {
		for _, shard := range t.shards {
			for i := range shard {
				if !yield(shard[i].key, &shard[i]) {
					return
				}
			}
		}
	}
}

// add adds a chunk, which may be there already. Nothing can be found until sort was
// called.
func (t *Chunks) add(c Chunk) {
	shard := t.shards[c.key[0]]
	if len(shard) == cap(shard) {
		// Before it grows: many objects may share their chunks.
		shard = sorted(shard)
		if len(shard) > cap(shard)/4*3 {
			grown := make([]Chunk, len(shard), cap(shard)+cap(shard)/4+16)
			copy(grown, shard)
			shard = grown
		}
	}
	t.shards[c.key[0]] = append(shard, c)
}

// sort makes chunks findable, once all are added.
func (t *Chunks) sort() {
	for i, shard := range t.shards {
		t.shards[i] = sorted(shard)
	}
}

// sorted sorts chunks and leaves one of each.
func sorted(chunks []Chunk) []Chunk {
	slices.SortFunc(chunks, func(a, b Chunk) int { return bytes.Compare(a.key[:], b.key[:]) })
	return slices.CompactFunc(chunks, func(a, b Chunk) bool { return a.key == b.key })
}

// Loose is the chunks that no newest manifest needs, by their blob IDs. It takes 40
// bytes for each.
type Loose struct {
	shards [256][]looseChunk
	// kept counts what is in the shards, beyond what didn't fit.
	kept, beyond int
}

type looseChunk struct {
	key   Key
	where Locations
}

// Len returns the number of chunks, those included that weren't kept.
func (t *Loose) Len() int { return t.kept + t.beyond }

// Find returns the locations that have a chunk; none if it isn't a loose one that
// was kept.
func (t *Loose) Find(key Key) Locations {
	shard := t.shards[key[0]]
	i, ok := slices.BinarySearchFunc(shard, key, func(c looseChunk, key Key) int { return bytes.Compare(c.key[:], key[:]) })
	if !ok {
		return 0
	}
	return shard[i].where
}

// All returns the chunks that were kept, in ascending order of their blob IDs, and
// who has them.
func (t *Loose) All() iter.Seq2[Key, Locations] {
	return func(yield func(Key, Locations) bool) {
		for _, shard := range t.shards {
			for _, c := range shard {
				if !yield(c.key, c.where) {
					return
				}
			}
		}
	}
}

// Add adds a chunk and who has it.
func (t *Loose) Add(key Key, where Locations) {
	t.addAll(append(slices.Clone(t.shards[key[0]]), looseChunk{key, where}), key[0], maxLoose)
}

// addAll makes chunks those whose IDs begin with one byte. It keeps at most so many
// of all, and may change the slice, but doesn't keep it.
func (t *Loose) addAll(chunks []looseChunk, first byte, most int) {
	slices.SortFunc(chunks, func(a, b looseChunk) int { return bytes.Compare(a.key[:], b.key[:]) })
	n := 0
	for _, c := range chunks {
		if n > 0 && chunks[n-1].key == c.key {
			chunks[n-1].where |= c.where
			continue
		}
		chunks[n] = c
		n++
	}
	t.kept -= len(t.shards[first])
	keep := min(n, most-t.kept)
	t.shards[first] = slices.Clone(chunks[:keep])
	t.kept += keep
	t.beyond += n - keep
}

// Keep has a chunk count as in use that no newest manifest needs. size is that of its
// blob, in bytes. Who has it is forgotten.
func (s *Survey) Keep(key Key, ref chunk.Ref, size int) {
	shard := s.InUse.shards[key[0]]
	i, found := slices.BinarySearchFunc(shard, key, func(c Chunk, key Key) int { return bytes.Compare(c.key[:], key[:]) })
	if !found {
		s.InUse.shards[key[0]] = slices.Insert(shard, i, Chunk{key: key, Ref: ref, size: uint32(size)})
	}
	loose := s.Unreferenced.shards[key[0]]
	i, found = slices.BinarySearchFunc(loose, key, func(c looseChunk, key Key) int { return bytes.Compare(c.key[:], key[:]) })
	if found {
		s.Unreferenced.shards[key[0]] = slices.Delete(loose, i, i+1)
		s.Unreferenced.kept--
	}
}

// listChunks lists the chunks at all locations.
func (v *Surveyor) listChunks(ctx context.Context, s *Survey) error {
	var loose []looseChunk
	errs, err := v.Set.ListEach(ctx, blob.KindChunk, s.Failed, func(group quorum.Group) error {
		loose = loose[:0]
		for i, infos := range group.Listed {
			for _, info := range infos {
				c := s.InUse.Find(info.Name.ID)
				switch {
				case c == nil:
					loose = append(loose, looseChunk{info.Name.ID, Locations(0).With(i)})
				case info.Size == int64(c.size):
					c.Present = c.Present.With(i)
				default:
					c.Corrupt = c.Corrupt.With(i)
				}
			}
		}
		s.Unreferenced.addAll(loose, group.First, maxLoose)
		return nil
	})
	if err != nil {
		return err
	}
	copy(s.Failed, errs)
	return ctx.Err()
}
