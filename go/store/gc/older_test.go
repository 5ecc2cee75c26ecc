package gc_test

import (
	"context"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/storetest"
)

// failManifests has a location fail to take manifests.
func (b *bed) failManifests(location int) {
	b.Wrap = func(i int, inner blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(inner)
		faulty.Hook(func(op blobtest.Op, name blob.Name) {
			if i == location && op == blobtest.Put && name.Kind == blob.KindManifest {
				faulty.Fail(blobtest.Put, nil)
			}
		})
		return faulty
	}
}

func TestWhatAFailedWriteReplacedIsKept(t *testing.T) {
	b := newBed(t)
	first := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "x", first)
	b.failManifests(1)
	_, err := b.Open().Put(context.Background(), storetest.Source("x", storetest.Content(2, 10)), nil)
	storetest.WantError(t, err, blobtest.ErrFault)
	b.Wrap = nil
	b.want(gc.Options{}, gc.Result{InUse: 2})
	b.Now = b.Now.Add(48 * time.Hour)
	b.want(gc.Options{}, gc.Result{InUse: 2})
	// The write is lost along with the only location that it reached.
	b.Spoil(0)
	storetest.WantContent(t, b.Open(), "x", first)
}

func TestWhatAFailedRemovalRemovedIsKept(t *testing.T) {
	b := newBed(t)
	content := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "x", content)
	b.failManifests(1)
	storetest.WantError(t, b.Open().Remove(context.Background(), "x"), blobtest.ErrFault)
	b.Wrap = nil
	b.want(gc.Options{}, gc.Result{InUse: 1})
	b.Spoil(0)
	storetest.WantContent(t, b.Open(), "x", content)
}
