package store_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

// wantEverywhere checks that each location by itself has the content.
func wantEverywhere(t *testing.T, b *storetest.Testbed, name string, content []byte) {
	t.Helper()
	for i := range b.Paths {
		storetest.WantContent(t, b.Open(i), name, content)
	}
}

// late returns a store whose manifests arrive at the given locations only after
// another writer has come and gone, and don't arrive at the first one.
func late(b *storetest.Testbed, other func()) *store.Store {
	var once sync.Once
	s, faulty := openHooked(b, func(_ int, op blobtest.Op, name blob.Name) {
		if op == blobtest.Put && name.Kind == blob.KindManifest {
			once.Do(other)
		}
	})
	faulty[0].Fail(blobtest.Put, nil)
	return s
}

func TestOlderWriteThatArrivesLastGivesWayToTheNewer(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("earlier"))
	s := late(b, func() {
		b.Now = b.Now.Add(time.Hour)
		storetest.Put(t, b.Open(), "x", []byte("newer"))
	})
	storetest.Put(t, s, "x", []byte("older"))
	wantEverywhere(t, b, "x", []byte("newer"))
}

func TestOlderWriteThatArrivesLastGivesWayToARemoval(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("earlier"))
	s := late(b, func() {
		b.Now = b.Now.Add(time.Hour)
		if err := b.Open().Remove(context.Background(), "x"); err != nil {
			t.Error(err)
		}
	})
	storetest.Put(t, s, "x", []byte("older"))
	for i := range b.Paths {
		if _, err := b.Open(i).Stat(context.Background(), "x"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("location %d has what was removed: %v", i, err)
		}
	}
}

func TestOlderRemovalThatArrivesLastGivesWayToTheNewerWrite(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("earlier"))
	s := late(b, func() {
		b.Now = b.Now.Add(time.Hour)
		storetest.Put(t, b.Open(), "x", []byte("newer"))
	})
	if err := s.Remove(context.Background(), "x"); err != nil {
		t.Error(err)
	}
	wantEverywhere(t, b, "x", []byte("newer"))
}

// manifests returns the content of the one manifest that each location has.
func manifests(t *testing.T, b *storetest.Testbed) [][]byte {
	t.Helper()
	var all [][]byte
	for i := range b.Paths {
		content, err := os.ReadFile(b.Blobs(i, blob.KindManifest)[0])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content)
	}
	return all
}

// overwriting returns a store whose manifests are replaced by older ones at the
// given locations, as by a writer that was slow, up to so many times.
func overwriting(t *testing.T, b *storetest.Testbed, times int, locations ...int) *store.Store {
	old := manifests(t, b)
	var mu sync.Mutex
	written := false
	s, _ := openHooked(b, func(_ int, op blobtest.Op, name blob.Name) {
		mu.Lock()
		defer mu.Unlock()
		if op == blobtest.Put && name.Kind == blob.KindManifest {
			written = true
		}
		if op != blobtest.Flush || !written || times == 0 {
			return
		}
		written = false
		times--
		for _, i := range locations {
			if err := os.WriteFile(b.Blobs(i, blob.KindManifest)[0], old[i], 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	return s
}

func TestNewerVersionThatIsOverwrittenIsWrittenAgain(t *testing.T) {
	for _, locations := range [][]int{{1, 2}, {0, 1, 2}} {
		b := storetest.New(t, 3)
		storetest.Put(t, b.Open(), "x", []byte("old"))
		storetest.Put(t, overwriting(t, b, 2, locations...), "x", []byte("new"))
		wantEverywhere(t, b, "x", []byte("new"))
	}
}

func TestTombstoneThatIsOverwrittenIsWrittenAgain(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	if err := overwriting(t, b, 1, 0, 1, 2).Remove(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(2).Stat(context.Background(), "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was removed came back: %v", err)
	}
}

func TestWriteThatIsOverwrittenAgainAndAgainFails(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	_, err := overwriting(t, b, 1000, 1, 2).Put(context.Background(), storetest.Source("x", []byte("new")), nil)
	storetest.WantError(t, err, store.ErrContended, "x: ")
}

// TestLocationThatMissesAWriteIsNotTakenForAnotherWriter: a location that is full
// or can't be read is nothing to write again for.
func TestLocationThatMissesAWriteIsNotTakenForAnotherWriter(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("old"))
	s, faulty := openHooked(b, nil)
	faulty[0].Fill(0)
	storetest.Put(t, s, "x", []byte("new"))
	puts := 0
	for _, f := range faulty[1:] {
		puts += f.Calls(blobtest.Put)
	}
	if puts != 4 {
		t.Errorf("%d blobs were put, want a chunk and a manifest at two locations", puts)
	}
	storetest.WantContent(t, b.Open(), "x", []byte("new"))
}
