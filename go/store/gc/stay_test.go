package gc_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/storetest"
)

// TestTombstonesLastBeforeTheyAreDeleted: whoever wrote a tombstone may have died before he
// flushed it. No location deletes it before a flush at every location covers it, or a
// power cut could leave the removed object at the others.
func TestTombstonesLastBeforeTheyAreDeleted(t *testing.T) {
	b := due(t)
	var mu sync.Mutex
	found, sure := map[int]bool{}, map[int]bool{}
	deleted := 0
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Hook(func(op blobtest.Op, name blob.Name) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case op == blobtest.Stat && name.Kind == blob.KindManifest:
				found[i] = true // A flush covers what others wrote only after it.
			case op == blobtest.Flush:
				sure[i] = sure[i] || found[i]
			case op == blobtest.Delete && name.Kind == blob.KindManifest:
				deleted++
				for at := range b.Paths {
					if !sure[at] {
						t.Errorf("location %d deletes a tombstone that location %d may lose", i, at)
					}
				}
			}
		})
		return faulty
	}
	b.wantBuried(gc.Options{}, gc.TombstoneResult{Total: 1, Deleted: 1})
	if deleted < len(b.Paths) {
		t.Errorf("it was deleted %d times", deleted)
	}
}

// TestTombstonesDeletedAfterAPutBegan has a collection begin at a call of a put of the same
// name, and end only after it: it stands still at a call of its own. What was acknowledged
// stays.
func TestTombstonesDeletedAfterAPutBegan(t *testing.T) {
	data := storetest.Content(3, 10)
	for n, beyond := 1, false; !beyond; n += 4 {
		beyond = true
		for m, more := 1, true; more; m++ {
			more = false
			t.Run(fmt.Sprint(n, m), func(t *testing.T) {
				b := due(t)
				resume, ended := make(chan struct{}), make(chan struct{})
				began := false
				var err error
				b.atCall(n, func() {
					began = true
					stands := make(chan struct{})
					stand := sync.OnceFunc(func() { close(stands) })
					var calls atomic.Int32
					var unlocked atomic.Bool
					b.Wrap = func(_ int, location blob.Location) blob.Location {
						faulty := blobtest.NewFaulty(location)
						faulty.Hook(func(blobtest.Op, blob.Name) {
							if unlocked.Load() && calls.Add(1) >= int32(m) {
								stand()
								<-resume
							}
						})
						return faulty
					}
					repo := b.Unlock()
					b.Wrap = nil
					unlocked.Store(true)
					go func() {
						defer close(ended)
						_, err := gc.Tombstones(context.Background(), repo, gc.Options{Grace: day, Now: b.clock()})
						if err != nil && !errors.Is(err, gc.ErrAtWork) {
							t.Error(err)
						}
					}()
					select {
					case <-stands:
						more = true
					case <-ended:
					}
				}, func() {
					_, err = b.Open().Put(context.Background(), storetest.Source("gone", data), nil)
				})
				close(resume)
				if !began {
					return
				}
				beyond = false
				<-ended
				if err != nil {
					storetest.WantError(t, err, store.ErrRemoving)
					return
				}
				storetest.WantContent(t, b.Open(), "gone", data)
				b.wantAgreed()
			})
		}
	}
}
