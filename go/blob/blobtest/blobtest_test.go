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

func TestMemoryAmendedAtOnce(t *testing.T) {
	m := blobtest.NewMemory("memory")
	blobtest.AmendAtOnce(t, m, blobtest.NewFaulty(m))
	blobtest.AmendMeanwhile(t, blobtest.NewFaulty(m), m)
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

func TestMemoryComesBackOldAndRots(t *testing.T) {
	m := blobtest.NewMemory("memory")
	name := blobtest.Name(blob.KindManifest, 1)
	put := func(content string) string {
		if err := m.Put(t.Context(), name, []byte(content)); err != nil {
			t.Fatal(err)
		}
		info, err := m.Stat(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mark
	}
	want := func(content, mark string) {
		t.Helper()
		data, err := m.Get(t.Context(), name, nil, 100)
		info, statErr := m.Stat(t.Context(), name)
		if err != nil || statErr != nil || string(data) != content || info.Mark != mark {
			t.Errorf("%q with the mark %s, %v, %v; want %q with %s", data, info.Mark, err, statErr, content, mark)
		}
	}
	first := put("first")
	restore := m.Snapshot()
	second := put("second")
	restore()
	want("first", first)
	third := put("third")
	if third == second {
		t.Error("two blobs have had the same mark")
	}
	m.Alter(func(_ blob.Name, data []byte) []byte { return data[1:] })
	want("hird", third)
	restore()
	want("first", first)
}
