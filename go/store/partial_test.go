package store_test

import (
	"context"
	"errors"
	"testing"

	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/storetest"
)

func TestRemovalThatMissedTheQuorumIsCompletedByTheNext(t *testing.T) {
	b := storetest.New(t, 3)
	storetest.Put(t, b.Open(), "x", []byte("content"))
	s, faulty := openHooked(b, nil)
	faulty[1].Fail(blobtest.Put, nil)
	faulty[2].Fail(blobtest.Put, nil)
	storetest.WantError(t, s.Remove(context.Background(), "x"), blobtest.ErrFault, "1/3")
	if err := b.Open().Remove(context.Background(), "x"); err != nil {
		t.Errorf("repeating the removal: %v", err)
	}
	// The tombstone must not depend on the location that took it first.
	if _, err := b.Open(1, 2).Stat(context.Background(), "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what was removed came back: %v", err)
	}
	storetest.WantError(t, b.Open().Remove(context.Background(), "x"), store.ErrNotFound)
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
