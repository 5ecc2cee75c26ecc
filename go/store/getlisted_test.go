package store_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/storetest"
)

// listed returns what is there to get.
func listed(t *testing.T, s *store.Store) *store.Listing {
	t.Helper()
	listing, err := s.ListToGet(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	return listing
}

// wantListed checks the content of the object with an index of a listing, and what is
// told of it.
func wantListed(t *testing.T, s *store.Store, listing *store.Listing, index int, want []byte) {
	t.Helper()
	var got bytes.Buffer
	o, err := s.GetListed(t.Context(), listing, index, &got, nil)
	if err != nil || !bytes.Equal(got.Bytes(), want) || o.Size != int64(len(want)) || o.Name != listing.At(index).Name {
		t.Errorf("got %d bytes of %d and was told of %+v, %v", got.Len(), len(want), o, err)
	}
}

// TestGetListedReadsNoManifestAgain: that of an object of one chunk is read once, for
// the listing.
func TestGetListedReadsNoManifestAgain(t *testing.T) {
	const n = 100
	b := newFarBed(t)
	b.putMany(b.open(), n, "content")
	large := storetest.Content(1, chunk.Size+1)
	storetest.Put(t, b.open(), "large", large)
	storetest.Put(t, b.open(), "nothing", nil)
	s := b.open()
	b.reads = 0
	listing := listed(t, s)
	if listing.Len() != n+2 || b.reads != 3*(n+2) {
		t.Fatalf("listed %d objects with %d reads of manifests", listing.Len(), b.reads)
	}
	b.reads = 0
	for i := range listing.Len() {
		o := listing.At(i)
		switch o.Name {
		case "large":
			wantListed(t, s, listing, i, large)
		case "nothing":
			wantListed(t, s, listing, i, nil)
		default:
			var number int
			if _, err := fmt.Sscanf(o.Name, "dir/%d", &number); err != nil {
				t.Fatal(err)
			}
			wantListed(t, s, listing, i, fmt.Append(nil, "content", number))
		}
		read, err := s.Stat(t.Context(), o.Name)
		if err != nil || read != o {
			t.Errorf("the listing tells %+v, a read %+v, %v", o, read, err)
		}
	}
	if want := 3 + 3*listing.Len(); b.reads != want {
		t.Errorf("%d reads of manifests, want those of the large object and of each that was asked for by its name: %d", b.reads, want)
	}
}

// collectAll deletes every chunk, as a collection does those that are not in use.
func collectAll(t *testing.T, b *farBed) {
	t.Helper()
	for _, location := range b.at {
		err := location.List(t.Context(), blob.KindChunk, func(info blob.Info) error {
			return location.Delete(t.Context(), info.Name)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestGetListedReadsAgain: an object that was replaced or removed, and collected, since
// it was listed is read as it is now.
func TestGetListedReadsAgain(t *testing.T) {
	b := newFarBed(t)
	for _, name := range []string{"a", "b", "c", "d"} {
		storetest.Put(t, b.open(), name, []byte(name+" before"))
	}
	s := b.open()
	listing := listed(t, s)
	storetest.Put(t, b.open(), "d", []byte("d now"))
	wantListed(t, s, listing, 3, []byte("d before"))
	collectAll(t, b)
	for _, name := range []string{"a", "d"} {
		storetest.Put(t, b.open(), name, []byte(name+" now, and longer"))
	}
	if err := b.open().Remove(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	wantListed(t, s, listing, 0, []byte("a now, and longer"))
	wantListed(t, s, listing, 3, []byte("d now, and longer"))
	var got bytes.Buffer
	_, err := s.GetListed(t.Context(), listing, 1, &got, nil)
	storetest.WantError(t, err, store.ErrNotFound, "b: ")
	// What is simply lost is said to be, as ever.
	_, listedErr := s.GetListed(t.Context(), listing, 2, &got, nil)
	_, err = s.Get(t.Context(), "c", &got, nil)
	storetest.WantError(t, listedErr, nil, "c: chunk 0 can't be read")
	if errors.Is(listedErr, store.ErrNotFound) || listedErr.Error() != err.Error() || got.Len() > 0 {
		t.Errorf("errors are %v and %v, and %d bytes were written", listedErr, err, got.Len())
	}
}

// TestListingWithoutChunks: an object of a listing that isn't one to get can be got all
// the same.
func TestListingWithoutChunks(t *testing.T) {
	b := newFarBed(t)
	storetest.Put(t, b.open(), "a", []byte("content"))
	listing, err := b.open().List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	wantListed(t, b.open(), listing, 0, []byte("content"))
}
