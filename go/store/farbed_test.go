package store_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

// farBed is three locations in memory that are far away, and stores over them.
type farBed struct {
	t  *testing.T
	at []*blobtest.Faulty
	// now is what stores take for the time.
	now time.Time

	mu sync.Mutex
	// reads counts the reads of manifests.
	reads int
}

func newFarBed(t *testing.T) *farBed {
	b := &farBed{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range 3 {
		location := blobtest.NewFaulty(blobtest.NewMemory(fmt.Sprintf("location-%d", i)))
		location.Hook(func(op blobtest.Op, name blob.Name) {
			if op == blobtest.Get && name.Kind == blob.KindManifest {
				b.mu.Lock()
				defer b.mu.Unlock()
				b.reads++
			}
		})
		b.at = append(b.at, location)
	}
	return b
}

// open returns a store over all locations.
func (b *farBed) open() *store.Store {
	b.t.Helper()
	var locations []blob.Location
	for _, location := range b.at {
		locations = append(locations, blobtest.Far{Location: location})
	}
	set, err := quorum.New(locations, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	set.Hedge()
	s, err := store.New(set, keystest.First(b.t).Root(b.t), store.Options{Now: func() time.Time { return b.now }})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// putMany stores n small objects.
func (b *farBed) putMany(s *store.Store, n int, content string) {
	b.t.Helper()
	var sources []store.Source
	for i := range n {
		sources = append(sources, storetest.Source(fmt.Sprintf("dir/%d", i), fmt.Append(nil, content, i)))
	}
	if err := s.PutAll(b.t.Context(), slices.Values(sources), nil, func([]store.Object) {}); err != nil {
		b.t.Fatal(err)
	}
}
