package blobtest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Location { return blobtest.NewMemory("memory") })
}

func TestFaultyWithoutFaults(t *testing.T) {
	blobtest.Run(t, func(*testing.T) blob.Location { return blobtest.NewFaulty(blobtest.NewMemory("memory")) })
}

func TestFaulty(t *testing.T) {
	f := blobtest.NewFaulty(blobtest.NewMemory("memory"))
	name := blobtest.Name(blob.KindChunk, 1)
	get := func() ([]byte, error) { return f.Get(t.Context(), name, nil, 100) }

	f.Fail(blobtest.Put, nil)
	if err := f.Put(t.Context(), name, []byte("data")); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("Put while failing: %v", err)
	}
	f.Heal()
	f.Fill(5)
	if err := f.Put(t.Context(), name, []byte("data")); err != nil {
		t.Errorf("Put with space: %v", err)
	}
	if err := f.Put(t.Context(), name, []byte("more")); !errors.Is(err, blobtest.ErrFull) {
		t.Errorf("Put without space: %v", err)
	}
	f.Corrupt()
	if got, err := get(); err != nil || !bytes.Equal(got, []byte("dat`")) {
		t.Errorf("Get while corrupt: %q, %v", got, err)
	}
	f.Truncate()
	if got, err := get(); err != nil || !bytes.Equal(got, []byte("dat")) {
		t.Errorf("Get while truncated: %q, %v", got, err)
	}
	f.Heal()
	f.Stall(blobtest.Get)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Get(ctx, name, nil, 100); !errors.Is(err, context.Canceled) {
		t.Errorf("Get while stalled: %v", err)
	}
	f.Hook(func(op blobtest.Op, _ blob.Name) {
		if op == blobtest.Get {
			f.Heal()
		}
	})
	if got, err := get(); err != nil || string(got) != "data" {
		t.Errorf("Get after a stall: %q, %v", got, err)
	}
	if n := f.Calls(blobtest.Get | blobtest.Put); n != 7 {
		t.Errorf("%d calls were counted, want 7", n)
	}
}
