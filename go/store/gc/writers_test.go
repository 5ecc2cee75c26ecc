package gc_test

import (
	"context"
	"io"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/gc"
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

func TestCollectionThatEndsBeforeAWriteDoesIsNoticed(t *testing.T) {
	b := newBed(t)
	data := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "old", data)
	b.remove("old")
	var s *store.Store
	b.before(blobtest.Put, blob.KindManifest, func() {
		// The write relies on the chunk by now, and the grace period is
		// shorter than the write.
		b.Now = b.Now.Add(day)
		b.want(gc.Options{}, gc.Result{Deleted: 1})
	}, func() { s = b.Open() })
	source := storetest.Source("x", data)
	open := source.Open
	source.Open = func() (io.ReadCloser, error) {
		b.want(gc.Options{}, gc.Result{Waiting: 1})
		return open()
	}
	_, err := s.Put(context.Background(), source, nil)
	storetest.WantError(t, err, store.ErrCollected, "x")
	storetest.Put(t, b.Open(), "x", data)
	storetest.WantContent(t, b.Open(), "x", data)
}

func TestTwoCollectionsAtOnceSpareWhatIsStoredAgain(t *testing.T) {
	b := newBed(t)
	data := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "old", data)
	b.remove("old")
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(day)
	options := gc.Options{Grace: day, Now: b.clock()}
	deleting, resume, ended := make(chan bool), make(chan bool), make(chan error)
	slow := func() {
		b.before(blobtest.Delete, blob.KindChunk, func() { close(deleting); <-resume }, func() {
			repo := b.Unlock()
			go func() {
				_, err := gc.Run(context.Background(), repo, options)
				ended <- err
			}()
		})
		<-deleting
	}
	// Both decide that the chunk is due before either deletes it.
	b.before(blobtest.Put, blob.KindRecord, slow, func() {
		if _, err := gc.Run(context.Background(), b.Unlock(), options); err != nil {
			t.Fatal(err)
		}
	})
	storetest.Put(t, b.Open(), "x", data)
	close(resume)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	storetest.WantContent(t, b.Open(), "x", data)
}
