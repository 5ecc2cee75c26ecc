package quorum_test

import (
	"errors"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
)

// TestSetIsKeptLong has one set serve thousands of purposes, each of which writes a
// blob and flushes, while its locations go down, one at a time, and come back. Each is
// told of its own blob only.
func TestSetIsKeptLong(t *testing.T) {
	set, at := three(t, 0)
	n := 0
	run := func(operations int, between func(i int)) (failed []*quorum.Writer) {
		t.Helper()
		for i := range operations {
			writer := set.NewWriter()
			n++
			if err := writer.Put(t.Context(), blobtest.Name(blob.KindChunk, n), []byte("data")); err != nil {
				t.Fatalf("operation %d: %v", n, err)
			}
			if between != nil {
				between(i)
			}
			if err := writer.Flush(t.Context()); err != nil {
				failed = append(failed, writer)
			}
		}
		return failed
	}
	none := func(failed []*quorum.Writer) {
		t.Helper()
		if len(failed) != 0 {
			t.Fatalf("%d operations failed though two locations took their blobs and flushed", len(failed))
		}
	}
	none(run(1000, nil))
	at[2].Fail(blobtest.All, nil)
	none(run(1000, nil))
	// The third comes back just when the second goes down: one blob is at the first
	// and the second, and not durable at two.
	failed := run(1000, func(i int) {
		if i == 500 {
			at[2].Heal()
			at[1].Fail(blobtest.All, nil)
		}
	})
	if len(failed) != 1 {
		t.Fatalf("%d operations failed, want the one that was cut in two", len(failed))
	}
	none(run(1000, nil))
	expectError(t, failed[0].Flush(t.Context()),
		"1/3 backends succeeded, need 2: ./b: the location is down; ./c: the location is down")
	at[1].Heal()
	none(run(1000, nil))
	if err := failed[0].Flush(t.Context()); err != nil {
		t.Errorf("once its locations are back: %v", err)
	}
}

// TestFlushIsAnsweredForItsOwnWriter: what one writer may rely on, another's flush
// doesn't take off it.
func TestFlushIsAnsweredForItsOwnWriter(t *testing.T) {
	set, at := three(t, 0)
	one, other := set.NewWriter(), set.NewWriter()
	at[2].Fail(blobtest.Put, nil)
	if err := one.Put(t.Context(), name, nil); err != nil {
		t.Fatal(err)
	}
	at[2].Heal()
	if err := other.Put(t.Context(), blobtest.Name(blob.KindChunk, 2), nil); err != nil {
		t.Fatal(err)
	}
	at[1].Fail(blobtest.Flush, nil)
	if err := other.Flush(t.Context()); err != nil {
		t.Errorf("a blob that two locations took and flushed: %v", err)
	}
	var short *quorum.WriteError
	for range 2 {
		if err := one.Flush(t.Context()); !errors.As(err, &short) || short.Succeeded != 1 {
			t.Errorf("a blob of which one location has flushed its copy: %v", err)
		}
	}
}
