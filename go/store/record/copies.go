package record

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
)

// Copies is what the locations of a set have of a record, in the set's order.
type Copies[T any] struct {
	// Replies are their answers. One without an error is authentic.
	Replies []quorum.Reply
	// Contents has what open returned for those, and the zero value for others.
	Contents []T
}

// Read reads a record of at most limit bytes at every location of a set. open
// authenticates and parses a copy; it is called by several goroutines.
func Read[T any](ctx context.Context, set *quorum.Set, s *Sealer, limit int64, open func([]byte) (T, error)) Copies[T] {
	replies, contents := quorum.GetOpened(ctx, set, s.name, limit, open)
	return Copies[T]{replies, contents}
}

// Write replaces the record at a location by a sealed one, durably.
func (s *Sealer) Write(ctx context.Context, location blob.Location, sealed []byte) error {
	if err := location.Put(ctx, s.name, sealed); err != nil {
		return err
	}
	return location.Flush(ctx)
}

// Kept returns the keys of those entries, at most so many, that a record holds, in
// ascending order: of more, the ones that compare puts first.
func Kept[K ~[32]byte, V any](entries map[K]V, most int, compare func(x, y V) int) []K {
	compareKeys := func(x, y K) int {
		a, b := [32]byte(x), [32]byte(y)
		return bytes.Compare(a[:], b[:])
	}
	keys := slices.Collect(maps.Keys(entries))
	if len(keys) > most {
		slices.SortFunc(keys, func(x, y K) int {
			return cmp.Or(compare(entries[x], entries[y]), compareKeys(x, y))
		})
		keys = keys[:most]
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}
