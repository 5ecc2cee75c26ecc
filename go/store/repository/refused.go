package repository

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// ErrForeign means that a location holds another cluster's key header.
var ErrForeign = errors.New("holds a different cluster's key header; remove it from --repo")

// refused is a location whose key header isn't this cluster's. Nothing is read
// from it and nothing written to it.
type refused struct{ location blob.Location }

func (r refused) String() string { return r.location.String() }

func (refused) Probe(context.Context) error { return ErrForeign }

func (refused) Put(context.Context, blob.Name, []byte) error { return ErrForeign }

func (refused) Get(context.Context, blob.Name, []byte, int64) ([]byte, error) {
	return nil, ErrForeign
}

func (refused) Stat(context.Context, blob.Name) (blob.Info, error) {
	return blob.Info{}, ErrForeign
}

func (refused) Delete(context.Context, blob.Name) error { return ErrForeign }

func (refused) List(context.Context, blob.Kind, func(blob.Info) error) error { return ErrForeign }

func (refused) Flush(context.Context) error { return ErrForeign }

// sortByCopies sorts locations by how many have the same header, most first.
func sortByCopies(locations []*Location, copies map[string]int) {
	slices.SortStableFunc(locations, func(a, b *Location) int {
		return cmp.Compare(copies[string(b.raw)], copies[string(a.raw)])
	})
}
