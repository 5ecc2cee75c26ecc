package survey_test

import (
	"context"
	"encoding/binary"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/storetest"
	"powercloud.unidatum.com/go/store/survey"
)

// listing is a location whose listing of chunks is made up.
type listing struct {
	blob.Location
	list func(fn func(blob.Info) error) error
}

func (l listing) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if kind != blob.KindChunk {
		return l.Location.List(ctx, kind, fn)
	}
	return l.list(fn)
}

func info(id [32]byte) blob.Info {
	return blob.Info{Name: blob.Name{Kind: blob.KindChunk, ID: id}, Size: 100}
}

// TestHostileListing has a location list chunks without end, or in any order. It
// counts as failed, and the other is surveyed all the same.
func TestHostileListing(t *testing.T) {
	for title, c := range map[string]struct {
		list func(fn func(blob.Info) error) error
		want string
	}{
		"endless": {func(fn func(blob.Info) error) error {
			var id [32]byte
			for n := uint64(0); ; n++ {
				binary.BigEndian.PutUint64(id[8:], n)
				if err := fn(info(id)); err != nil {
					return err
				}
			}
		}, "it lists more than 1048576 blobs"},
		"one again and again": {func(fn func(blob.Info) error) error {
			for {
				if err := fn(info([32]byte{1})); err != nil {
					return err
				}
			}
		}, "it lists more than 1048576 blobs"},
		"out of order": {func(fn func(blob.Info) error) error {
			for first := byte(255); ; first-- {
				if err := fn(info([32]byte{first})); err != nil {
					return err
				}
			}
		}, "its listing is out of order"},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 2)
			storetest.Put(t, b.Open(), "x", storetest.Content(1, 10))
			b.Wrap = func(i int, location blob.Location) blob.Location {
				if i == 1 {
					return listing{location, c.list}
				}
				return location
			}
			surveyor, err := survey.New(b.Set(), b.Cluster.Root(t))
			if err != nil {
				t.Fatal(err)
			}
			found, err := surveyor.Take(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			storetest.WantError(t, found.Failed[1], nil, c.want)
			if found.Failed[0] != nil || found.InUse.Len() != 1 {
				t.Errorf("the other location: %v, %d chunks in use", found.Failed[0], found.InUse.Len())
			}
			for _, chunk := range found.InUse.All() {
				if !chunk.Present.Has(0) {
					t.Error("its chunk was not found")
				}
			}
		})
	}
}
