package gc_test

import (
	"context"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/storetest"
)

// before has fn called once, before the first operation of a kind on the
// locations that the next call of make opens.
func (b *bed) before(op blobtest.Op, kind blob.Kind, fn func(), open func()) {
	b.t.Helper()
	var once sync.Once
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Hook(func(o blobtest.Op, name blob.Name) {
			if o == op && name.Kind == kind {
				once.Do(fn)
			}
		})
		return faulty
	}
	open()
	b.Wrap = nil
}

// overtaken stores an object that relies on a chunk of a removed one. A first
// collection runs when it has begun, and collect when it has relied on the chunk.
// The write must not be acknowledged.
func (b *bed) overtaken(collect func()) {
	b.t.Helper()
	data := storetest.Content(1, 10)
	storetest.Put(b.t, b.Open(), "old", data)
	b.remove("old")
	var s *store.Store
	b.before(blobtest.Put, blob.KindManifest, collect, func() { s = b.Open() })
	source := storetest.Source("x", data)
	open := source.Open
	source.Open = func() (io.ReadCloser, error) {
		b.want(gc.Options{}, gc.Result{Waiting: 1})
		return open()
	}
	_, err := s.Put(context.Background(), source, nil)
	storetest.WantError(b.t, err, store.ErrCollected, "x")
	storetest.Put(b.t, b.Open(), "x", data)
	storetest.WantContent(b.t, b.Open(), "x", data)
}

func TestCollectionThatEndsBeforeAWriteDoesIsNoticed(t *testing.T) {
	b := newBed(t)
	b.overtaken(func() {
		// The grace period is shorter than the write.
		b.Now = b.Now.Add(day)
		b.want(gc.Options{}, gc.Result{Deleted: 1})
	})
}

// TestCollectionThatIsForgottenBeforeAWriteEndsIsNoticed has the mark of what was
// deleted expire as well.
func TestCollectionThatIsForgottenBeforeAWriteEndsIsNoticed(t *testing.T) {
	b := newBed(t)
	b.overtaken(func() {
		b.Now = b.Now.Add(day)
		b.want(gc.Options{}, gc.Result{Deleted: 1})
		b.Now = b.Now.Add(day)
		b.want(gc.Options{}, gc.Result{})
	})
}

func TestTwoCollectionsAtOnceSpareWhatIsStoredAgain(t *testing.T) {
	b := newBed(t)
	data := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "old", data)
	b.remove("old")
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(day)
	options := gc.Options{Grace: day, Now: b.clock()}
	var resume func() error
	slow := func() { resume = b.slow(options) }
	// Both decide that the chunk is due before either deletes it.
	b.before(blobtest.Put, blob.KindRecord, slow, func() {
		if _, err := gc.Run(context.Background(), b.Unlock(), options); err != nil {
			t.Fatal(err)
		}
	})
	storetest.Put(t, b.Open(), "x", data)
	if err := resume(); err != nil {
		t.Fatal(err)
	}
	storetest.WantContent(t, b.Open(), "x", data)
}

// slow starts a collection that stands still when it is about to delete a chunk,
// until resume is called, which returns its error.
func (b *bed) slow(options gc.Options) (resume func() error) {
	b.t.Helper()
	options.Now = b.clock()
	deleting, goOn, ended := make(chan bool), make(chan bool), make(chan error)
	b.before(blobtest.Delete, blob.KindChunk, func() { close(deleting); <-goOn }, func() {
		repo := b.Unlock()
		go func() {
			_, err := gc.Run(context.Background(), repo, options)
			ended <- err
		}()
	})
	<-deleting
	return func() error { close(goOn); return <-ended }
}

// TestCollectionKeepsTheMarksOfAnother has a second collection run while the first
// is about to delete a chunk. The write that relies on the chunk must notice.
func TestCollectionKeepsTheMarksOfAnother(t *testing.T) {
	for title, both := range map[string]func(b *bed, first func()){
		"set before it read the record": func(b *bed, first func()) {
			first()
			b.want(gc.Options{}, gc.Result{Waiting: 1})
		},
		"set after it read the record": func(b *bed, first func()) {
			// It flushes before it writes its record.
			b.before(blobtest.Flush, 0, first, func() { b.want(gc.Options{Grace: 2 * day}, gc.Result{Waiting: 1}) })
		},
	} {
		t.Run(title, func(t *testing.T) {
			b := newBed(t)
			var resume func() error
			b.overtaken(func() {
				b.Now = b.Now.Add(day)
				both(b, func() { resume = b.slow(gc.Options{Grace: day}) })
			})
			if err := resume(); err != nil {
				t.Fatal(err)
			}
			storetest.WantContent(t, b.Open(), "x", storetest.Content(1, 10))
		})
	}
}

// TestFailedDeletionLeavesTheMark: a location that seemed to fail may delete the
// chunk later, and the others have.
func TestFailedDeletionLeavesTheMark(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "old", storetest.Content(1, 10))
	b.remove("old")
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(day)
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		if i == 1 {
			faulty.Fail(blobtest.Delete, nil)
		}
		return faulty
	}
	_, err := b.run(gc.Options{})
	storetest.WantError(t, err, blobtest.ErrFault, b.Paths[1])
	b.Wrap = nil
	keeper, err := grace.NewKeeper(b.Set(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	listed, err := keeper.Listed(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(listed.Chunks) != 1 || !slices.Contains(slices.Collect(maps.Values(listed.Chunks)), true) {
		t.Errorf("listed are %v, want the chunk with its mark", listed.Chunks)
	}
	// It is deleted as soon as the location lets it.
	b.want(gc.Options{}, gc.Result{Deleted: 1})
}
