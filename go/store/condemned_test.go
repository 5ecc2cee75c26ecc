package store_test

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/storetest"
)

// condemn has a collection be about to delete the chunk with some content.
func condemn(t *testing.T, b *storetest.Testbed, content []byte) {
	t.Helper()
	sealer, err := chunk.NewSealer(b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	keeper, err := grace.NewKeeper(b.Set(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	record := grace.NewRecord()
	record.Chunks[sealer.Name(sealer.Identify(content)).ID] = grace.Entry{Since: b.Now, Condemned: true}
	if err := keeper.Write(context.Background(), record, rand.Reader); err != nil {
		t.Fatal(err)
	}
}

// openHooked returns a store in whose locations every operation calls hook.
func openHooked(b *storetest.Testbed, hook func(index int, op blobtest.Op, name blob.Name)) (*store.Store, []*blobtest.Faulty) {
	faulty := make([]*blobtest.Faulty, len(b.Paths))
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty[i] = blobtest.NewFaulty(location)
		if hook != nil {
			faulty[i].Hook(func(op blobtest.Op, name blob.Name) { hook(i, op, name) })
		}
		return faulty[i]
	}
	defer func() { b.Wrap = nil }()
	return b.Open(), faulty
}

func TestCollectedWriteIsUndone(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("earlier"))
	var once sync.Once
	s, _ := openHooked(b, func(_ int, op blobtest.Op, name blob.Name) {
		if op == blobtest.Put && name.Kind == blob.KindManifest {
			once.Do(func() { condemn(t, b, []byte("new")) })
		}
	})
	_, err := s.Put(context.Background(), storetest.Source("x", []byte("new")), nil)
	storetest.WantError(t, err, store.ErrCollected, "x")
	storetest.WantContent(t, b.Open(), "x", []byte("earlier"))
}

func TestUndoingACollectedWriteSparesWhatOthersWroteSince(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("earlier"))
	records := 0
	var mu sync.Mutex
	s, _ := openHooked(b, func(_ int, op blobtest.Op, name blob.Name) {
		if op != blobtest.Get || name.Kind != blob.KindRecord {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		// The last look at the record comes after three at the beginning.
		if records++; records == 4 {
			condemn(t, b, []byte("new"))
			storetest.Put(t, b.Open(), "x", []byte("someone else's"))
		}
	})
	_, err := s.Put(context.Background(), storetest.Source("x", []byte("new")), nil)
	storetest.WantError(t, err, store.ErrCollected, "x")
	storetest.WantContent(t, b.Open(), "x", []byte("someone else's"))
}

func TestWriteIsNotAcknowledgedWithoutALastLookAtTheRecord(t *testing.T) {
	b := storetest.New(t, 3)
	unseen := errors.New("the record can't be seen")
	var faulty []*blobtest.Faulty
	var s *store.Store
	s, faulty = openHooked(b, func(i int, op blobtest.Op, name blob.Name) {
		if op == blobtest.Put && name.Kind == blob.KindManifest {
			faulty[i].Fail(blobtest.Get, unseen)
		}
	})
	_, err := s.Put(context.Background(), storetest.Source("x", []byte("new")), nil)
	storetest.WantError(t, err, unseen, "location-0")
}
