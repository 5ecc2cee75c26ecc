package record_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/record"
)

// TestRead: each location's copy is opened, and what can't be is an answer without
// content.
func TestRead(t *testing.T) {
	sealer, err := record.NewSealer(keystest.First(t).Root(t), "PCtest01", keys.PurposeLostRecordName)
	if err != nil {
		t.Fatal(err)
	}
	var locations []blob.Location
	var at []*blobtest.Faulty
	for _, name := range []string{"good", "corrupt", "absent", "down"} {
		location := blobtest.NewFaulty(blobtest.NewMemory(name))
		at, locations = append(at, location), append(locations, location)
	}
	set, err := quorum.New(locations, 0)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := sealer.Seal([]byte("content"), bytes.NewReader(make([]byte, 24)))
	if err != nil {
		t.Fatal(err)
	}
	for _, location := range locations[:2] {
		if err := sealer.Write(t.Context(), location, sealed); err != nil {
			t.Fatal(err)
		}
	}
	at[1].Corrupt()
	at[3].Fail(blobtest.All, nil)
	copies := record.Read(t.Context(), set, sealer, 1<<10, sealer.Open)
	if string(copies.Contents[0]) != "content" || copies.Contents[1] != nil || copies.Contents[2] != nil || copies.Contents[3] != nil {
		t.Errorf("read %q", copies.Contents)
	}
	for i, want := range []error{nil, blob.ErrDamaged, blob.ErrNotFound, blobtest.ErrFault} {
		if err := copies.Replies[i].Err; !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", locations[i], err, want)
		}
	}
	if err := set.AnsweredAtQuorum(t.Context(), copies.Replies); err != nil {
		t.Errorf("three of four answered: %v", err)
	}
	at[2].Fail(blobtest.All, nil)
	copies = record.Read(t.Context(), set, sealer, 1<<10, sealer.Open)
	var short *quorum.WriteError
	if err := set.AnsweredAtQuorum(t.Context(), copies.Replies); !errors.As(err, &short) || short.Succeeded != 2 || short.Need != 3 || len(short.Failures) != 2 {
		t.Errorf("two of four answered: %v", err)
	}
}

func TestKept(t *testing.T) {
	entries := map[[32]byte]int{{3}: 1, {1}: 2, {2}: 1, {4}: 3}
	for most, want := range map[int][]byte{0: {}, 1: {2}, 2: {2, 3}, 3: {1, 2, 3}, 4: {1, 2, 3, 4}, 9: {1, 2, 3, 4}} {
		got := []byte{}
		for _, key := range record.Kept(entries, most, func(x, y int) int { return x - y }) {
			got = append(got, key[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("of at most %d there are %v, want %v", most, got, want)
		}
	}
}
