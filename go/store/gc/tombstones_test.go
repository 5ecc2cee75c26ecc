package gc_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/storetest"
)

func (b *bed) bury(options gc.Options) (gc.TombstoneResult, error) {
	if options.Grace == 0 {
		options.Grace = day
	}
	if options.Now == nil {
		options.Now = b.clock()
	}
	return gc.Tombstones(context.Background(), b.Unlock(), options)
}

// wantBuried collects tombstones and checks the counts.
func (b *bed) wantBuried(options gc.Options, want gc.TombstoneResult) {
	b.t.Helper()
	got, err := b.bury(options)
	if err != nil {
		b.t.Fatal(err)
	}
	got.List = nil
	if !reflect.DeepEqual(got, want) {
		b.t.Errorf("collected %+v, want %+v", got, want)
	}
}

// removed makes a cluster with an object and a removed one.
func removed(t *testing.T) *bed {
	t.Helper()
	b := newBed(t)
	storetest.Put(t, b.Open(), "keep", storetest.Content(1, 10))
	storetest.Put(t, b.Open(), "gone", storetest.Content(2, 10))
	b.remove("gone")
	return b
}

// due makes a cluster with a removed object whose tombstone is due.
func due(t *testing.T) *bed {
	t.Helper()
	b := removed(t)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(day)
	return b
}

// wantGone checks that the removed object is, and that the other isn't.
func (b *bed) wantGone(name string) {
	b.t.Helper()
	_, err := b.Open().Stat(context.Background(), name)
	storetest.WantError(b.t, err, store.ErrNotFound)
	list, err := b.Open().List(context.Background(), "")
	if err != nil {
		b.t.Fatal(err)
	}
	if names := storetest.Names(slices.Collect(list.Objects())); !slices.Equal(names, []string{"keep"}) {
		b.t.Errorf("listed are %v", names)
	}
	storetest.WantContent(b.t, b.Open(), "keep", storetest.Content(1, 10))
}

func (b *bed) manifests(location int) int { return len(b.Blobs(location, blob.KindManifest)) }

// wantAgreed checks that the locations don't differ.
func (b *bed) wantAgreed() {
	b.t.Helper()
	report, err := repair.Check(context.Background(), b.Unlock(), repair.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		b.t.Errorf("check: %v: %+v", err, report.Locations)
	}
}

func (b *bed) repair() {
	b.t.Helper()
	report, err := repair.Repair(context.Background(), b.Unlock(), repair.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	if err := report.Err(); err != nil {
		b.t.Fatal(err)
	}
}

func TestTombstonesTakeTwoRunsAndTheGracePeriod(t *testing.T) {
	b := removed(t)
	removedAt := b.Now
	b.wantBuried(gc.Options{DryRun: true}, gc.TombstoneResult{Total: 1, Waiting: 1})
	if n := len(b.Blobs(0, blob.KindRecord)); n != 0 {
		t.Errorf("a dry run left %d records", n)
	}
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(day - time.Second)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(time.Second)
	result, err := b.bury(gc.Options{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.List) != 1 || result.Deleted != 1 || result.List[0].Object != "gone" ||
		result.List[0].State != gc.TombstoneDue || result.List[0].Removed.Sub(removedAt).Abs() > time.Second {
		t.Errorf("a dry run found %+v", result)
	}
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
	for i := range b.Paths {
		if n := b.manifests(i); n != 1 {
			t.Errorf("location %d has %d manifests, want 1", i, n)
		}
	}
	b.wantBuried(gc.Options{}, gc.TombstoneResult{})
	b.wantGone("gone")
	b.wantAgreed()
	storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
	storetest.WantContent(t, b.Open(), "gone", storetest.Content(3, 10))
}

func TestTombstonesNeedEveryLocation(t *testing.T) {
	b := due(t)
	b.Spoil(1)
	_, err := b.bury(gc.Options{})
	storetest.WantError(t, err, nil, "store: gc needs every backend, and "+b.Paths[1]+" is unreachable")
	if n := b.manifests(0); n != 2 {
		t.Errorf("%d manifests are left, want both", n)
	}
}

// TestTombstoneThatALocationLacksStays: that location may have an older version, or
// get it back.
func TestTombstoneThatALocationLacksStays(t *testing.T) {
	for title, lose := range map[string]func(b *bed, rollBack func()){
		"old":     func(_ *bed, rollBack func()) { rollBack() },
		"corrupt": func(b *bed, _ func()) { b.Alter(b.Blobs(1, blob.KindManifest)...) },
		"missing": func(b *bed, _ func()) { b.empty(1) },
	} {
		t.Run(title, func(t *testing.T) {
			b := newBed(t)
			storetest.Put(t, b.Open(), "keep", storetest.Content(1, 10))
			storetest.Put(t, b.Open(), "gone", storetest.Content(2, 10))
			rollBack := b.Snapshot(1)
			b.remove("gone")
			b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
			lose(b, rollBack)
			b.Now = b.Now.Add(2 * day)
			b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Incomplete: 1})
			b.wantGone("gone")
			b.repair()
			// From the start: it wasn't there throughout.
			b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
			b.Now = b.Now.Add(day)
			b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
			b.wantGone("gone")
			b.wantAgreed()
		})
	}
}

// empty deletes everything at a location but the key header.
func (b *bed) empty(location int) {
	b.t.Helper()
	b.Spoil(location)
	removeFile(b.t, b.Paths[location])
	b.WriteHeader(location, b.Cluster.Header)
}

func TestTombstoneOfAnotherRemovalWaitsAnew(t *testing.T) {
	b := due(t)
	storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
	b.remove("gone")
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
}

func TestTombstoneRunWithAClockThatIsAheadDelaysNothing(t *testing.T) {
	b := removed(t)
	b.Now = b.Now.Add(1000 * day)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(-1000 * day)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(day)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
}

func TestTombstonesAndTheCatalog(t *testing.T) {
	b := removed(t)
	known := func() *store.Store {
		t.Helper()
		repo := b.Unlock()
		var err error
		if repo.Catalog, err = catalog.New(b.t.TempDir(), repo.Root); err != nil {
			t.Fatal(err)
		}
		if _, err := gc.Tombstones(context.Background(), repo, gc.Options{Grace: day, Now: b.clock()}); err != nil {
			t.Fatal(err)
		}
		s, err := store.New(repo.Set, repo.Root, store.Options{Catalog: repo.Catalog})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	known()
	b.Now = b.Now.Add(day)
	s := known()
	for _, want := range [][]string{{"keep"}, {"gone", "keep"}} {
		list, err := s.List(context.Background(), "")
		if err != nil {
			t.Fatal(err)
		}
		if names := storetest.Names(slices.Collect(list.Objects())); !slices.Equal(names, want) {
			t.Errorf("listed are %v, want %v", names, want)
		}
		storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
	}
}

// TestTombstonesCutAnywhere cuts a collection at each call of a location.
func TestTombstonesCutAnywhere(t *testing.T) {
	for n, cut := 1, true; cut; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := due(t)
			cut = false
			b.failAfter(n, func() { cut = true })
			_, err := b.bury(gc.Options{})
			b.Wrap = nil
			if cut && err == nil {
				t.Error("a collection that was cut succeeded")
			}
			if !cut && err != nil {
				t.Error(err)
			}
			b.wantGone("gone")
			b.wantAgreed()
			b.repair()
			b.wantGone("gone")
			if _, err := b.bury(gc.Options{}); err != nil {
				t.Error(err)
			}
			// What was marked is taken up again.
			b.Now = b.Now.Add(time.Hour)
			if _, err := b.bury(gc.Options{}); err != nil {
				t.Error(err)
			}
			if n := b.manifests(0) + b.manifests(1); n != 2 {
				t.Errorf("%d manifests are left, want that of an object twice", n)
			}
			b.wantGone("gone")
			b.wantAgreed()
			storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
		})
	}
}

// failAfter has every location of the sets made from now on fail for good at the
// nth call of any of them.
func (b *bed) failAfter(n int, failed func()) {
	var mu sync.Mutex
	var all []*blobtest.Faulty
	calls := 0
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		all = append(all, faulty)
		faulty.Hook(func(_ blobtest.Op, name blob.Name) {
			if name == blob.Header() {
				return // The cluster is unlocked first.
			}
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == n {
				failed()
				for _, f := range all {
					f.Fail(blobtest.All, nil)
				}
			}
		})
		return faulty
	}
}

// TestTombstoneOneLocationKeepsFailing has a location refuse to delete.
func TestTombstoneOneLocationKeepsFailing(t *testing.T) {
	b := due(t)
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		if i == 1 {
			faulty.Fail(blobtest.Delete, nil)
		}
		return faulty
	}
	_, err := b.bury(gc.Options{})
	storetest.WantError(t, err, blobtest.ErrFault, b.Paths[1], "deleting a tombstone")
	b.Wrap = nil
	b.wantGone("gone")
	b.wantAgreed()
	storetest.WantError(t, b.Open().Remove(context.Background(), "gone"), store.ErrNotFound)
	// It may be deleted there any moment.
	_, err = b.Open().Put(context.Background(), storetest.Source("gone", nil), nil)
	storetest.WantError(t, err, store.ErrRemoving, "gone")
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Waiting: 1})
	b.Now = b.Now.Add(time.Hour)
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
	b.wantGone("gone")
	storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
}

// TestTombstoneOneLocationLies has a location that says it has deleted, and hasn't.
func TestTombstoneOneLocationLies(t *testing.T) {
	b := due(t)
	b.Wrap = func(i int, location blob.Location) blob.Location {
		if i == 1 {
			return keeping{location}
		}
		return location
	}
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
	b.Wrap = nil
	b.wantGone("gone")
	b.repair()
	b.wantGone("gone")
}

type keeping struct{ blob.Location }

func (keeping) Delete(context.Context, blob.Name) error { return nil }

// TestPutWhileTombstonesAreDeleted writes an object of the removed one's name at
// every call of the collection to a location. What is acknowledged stays.
func TestPutWhileTombstonesAreDeleted(t *testing.T) {
	data := storetest.Content(3, 10)
	for n, during := 1, true; during; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := due(t)
			during = false
			var putErr error
			b.atCall(n, func() {
				during = true
				_, putErr = b.Open().Put(context.Background(), storetest.Source("gone", data), nil)
			}, func() {
				if _, err := b.bury(gc.Options{}); err != nil && !errors.Is(err, gc.ErrAtWork) {
					t.Error(err)
				}
			})
			if !during {
				return
			}
			if putErr != nil {
				storetest.WantError(t, putErr, store.ErrRemoving)
				storetest.Put(t, b.Open(), "gone", data)
			}
			storetest.WantContent(t, b.Open(), "gone", data)
			b.wantAgreed()
			b.Now = b.Now.Add(2 * day)
			b.wantBuried(gc.Options{}, gc.TombstoneResult{})
			storetest.WantContent(t, b.Open(), "gone", data)
		})
	}
}

// atCall runs a function at the nth call to a location that run makes.
func (b *bed) atCall(n int, fn, run func()) {
	var mu sync.Mutex
	calls := 0
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Hook(func(blobtest.Op, blob.Name) {
			mu.Lock()
			calls++
			now := calls == n
			mu.Unlock()
			if now {
				wrap := b.Wrap
				b.Wrap = nil
				fn()
				b.Wrap = wrap
			}
		})
		return faulty
	}
	run()
	b.Wrap = nil
}

// TestTombstonesDeletedWhilePutting has a collection run whole, at every call of a
// put of the same name to a location.
func TestTombstonesDeletedWhilePutting(t *testing.T) {
	data := storetest.Content(3, 10)
	for n, during := 1, true; during; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := due(t)
			during = false
			var err error
			var s *store.Store
			b.atCall(n, func() {
				during = true
				if _, err := b.bury(gc.Options{}); err != nil {
					t.Error(err)
				}
			}, func() {
				s = b.Open()
				_, err = s.Put(context.Background(), storetest.Source("gone", data), nil)
			})
			if err != nil {
				t.Fatal(err)
			}
			storetest.WantContent(t, b.Open(), "gone", data)
			b.wantAgreed()
		})
	}
}

// TestTwoTombstoneCollectionsAtOnce runs a second collection at every call of the
// first to a location, and a put after both.
func TestTwoTombstoneCollectionsAtOnce(t *testing.T) {
	for n, during := 1, true; during; n++ {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := due(t)
			during = false
			b.atCall(n, func() {
				during = true
				if _, err := b.bury(gc.Options{}); err != nil && !errors.Is(err, gc.ErrAtWork) {
					t.Error(err)
				}
				b.wantAgreed()
				b.wantGone("gone")
			}, func() {
				if _, err := b.bury(gc.Options{}); err != nil && !errors.Is(err, gc.ErrAtWork) {
					t.Error(err)
				}
			})
			b.wantGone("gone")
			b.wantAgreed()
			b.Now = b.Now.Add(time.Hour)
			if _, err := b.bury(gc.Options{}); err != nil {
				t.Error(err)
			}
			storetest.Put(t, b.Open(), "gone", storetest.Content(3, 10))
			storetest.WantContent(t, b.Open(), "gone", storetest.Content(3, 10))
		})
	}
}

// TestTombstoneCollectionThatWasSuspended: what it saw was long ago.
func TestTombstoneCollectionThatWasSuspended(t *testing.T) {
	b := due(t)
	now := b.Now
	b.before(blobtest.Put, blob.KindRecord, func() {}, func() {
		calls := 0
		_, err := b.bury(gc.Options{Now: func() time.Time {
			calls++
			return now.Add(time.Duration(calls) * time.Hour)
		}})
		storetest.WantError(t, err, nil, "run it again")
	})
	if n := b.manifests(0); n != 2 {
		t.Errorf("%d manifests are left, want both", n)
	}
}
