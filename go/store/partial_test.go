package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/storetest"
)

// halfRemoved returns a testbed with an object whose removal reached only the
// first of three locations.
func halfRemoved(t *testing.T) *storetest.Testbed {
	t.Helper()
	b := storetest.New(t, 3)
	b.Init()
	storetest.Put(t, b.Open(), "x", []byte("content"))
	s, faulty := openHooked(b, nil)
	faulty[1].Fail(blobtest.Put, nil)
	faulty[2].Fail(blobtest.Put, nil)
	storetest.WantError(t, s.Remove(context.Background(), "x"), blobtest.ErrFault, "x: 1/3", "until 'pcctl rm' succeeds")
	return b
}

// wantRemoved checks that the locations with the given indexes, or all, show the
// object as removed.
func wantRemoved(t *testing.T, b *storetest.Testbed, indexes ...int) {
	t.Helper()
	if _, err := b.Open(indexes...).Stat(context.Background(), "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("at locations %v the object is not removed: %v", indexes, err)
	}
}

func TestFailedRemovalShowsOnlyWhereItArrived(t *testing.T) {
	b := halfRemoved(t)
	wantRemoved(t, b)
	wantRemoved(t, b, 0, 1)
	storetest.WantContent(t, b.Open(1, 2), "x", []byte("content"))
}

func TestRemovalThatMissedTheQuorumIsCompletedByTheNext(t *testing.T) {
	b := halfRemoved(t)
	if err := b.Open().Remove(context.Background(), "x"); err != nil {
		t.Errorf("repeating the removal: %v", err)
	}
	// The tombstone must not depend on the location that took it first.
	wantRemoved(t, b, 1, 2)
	storetest.WantError(t, b.Open().Remove(context.Background(), "x"), store.ErrNotFound)
}

// TestLocationsThatAreDownDoNotCompleteARemoval: that they have the tombstone
// must not be assumed.
func TestLocationsThatAreDownDoNotCompleteARemoval(t *testing.T) {
	b := halfRemoved(t)
	s, faulty := openHooked(b, nil)
	faulty[1].Fail(blobtest.All, nil)
	faulty[2].Fail(blobtest.All, nil)
	err := s.Remove(context.Background(), "x")
	if errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %q says that the removal is complete", err)
	}
	storetest.WantError(t, err, blobtest.ErrFault, "x: 1/3", "location-1", "location-2", "until 'pcctl rm' succeeds")
}

func TestRemovalThatNoLocationTookLeavesTheObject(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	s, faulty := openHooked(b, nil)
	for _, f := range faulty {
		f.Fail(blobtest.Put, nil)
	}
	err := s.Remove(context.Background(), "x")
	storetest.WantError(t, err, blobtest.ErrFault, "x: 0/3")
	if strings.Contains(err.Error(), "until") {
		t.Errorf("error %q says that the object may be removed", err)
	}
	storetest.WantContent(t, b.Open(), "x", []byte("content"))
}

func TestWriteReplacesAHalfRemoval(t *testing.T) {
	b := halfRemoved(t)
	storetest.Put(t, b.Open(), "x", []byte("again"))
	storetest.WantContent(t, b.Open(0, 1), "x", []byte("again"))
	storetest.WantContent(t, b.Open(1, 2), "x", []byte("again"))
}

func TestRepairCompletesAHalfRemoval(t *testing.T) {
	b := halfRemoved(t)
	if _, err := repair.Repair(context.Background(), b.Unlock(), repair.Options{}); err != nil {
		t.Fatal(err)
	}
	wantRemoved(t, b, 1, 2)
}

func TestInterruptionIsNotTakenForAnUnreachableLocation(t *testing.T) {
	b := storetest.New(t, 2)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.Open().Stat(ctx, "x")
	storetest.WantError(t, err, context.Canceled)
	storetest.WantError(t, b.Open().Remove(ctx, "x"), context.Canceled)
}

func TestRemovingAgainSyncsTheTombstone(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	// The first removal is cut off when it has written the tombstone everywhere.
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Fail(blobtest.Flush, nil)
		return faulty
	}
	storetest.WantError(t, b.Open().Remove(t.Context(), "x"), blobtest.ErrFault)
	storetest.WantError(t, b.Open().Remove(t.Context(), "x"), blobtest.ErrFault)
	b.Wrap = nil
	storetest.WantError(t, b.Open().Remove(t.Context(), "x"), store.ErrNotFound)
}
