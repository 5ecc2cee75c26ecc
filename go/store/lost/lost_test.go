package lost_test

import (
	"context"
	"crypto/rand"
	"maps"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store/lost"
	"powercloud.unidatum.com/go/store/storetest"
)

func keeper(t *testing.T, b *storetest.Testbed) (*lost.Keeper, []blob.Location) {
	t.Helper()
	set := b.Set()
	k, err := lost.NewKeeper(set, b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return k, set.Locations()
}

func write(t *testing.T, k *lost.Keeper, location blob.Location, blobs lost.Blobs) {
	t.Helper()
	if err := k.Write(context.Background(), location, blobs, rand.Reader); err != nil {
		t.Fatal(err)
	}
}

func wantListed(t *testing.T, k *lost.Keeper, want lost.Blobs) {
	t.Helper()
	if listed, err := k.Listed(context.Background()); err != nil || !maps.Equal(listed, want) {
		t.Errorf("listed %v, %v, want %v", listed, err, want)
	}
}

func TestListedIsWhatAnyLocationHas(t *testing.T) {
	b := storetest.New(t, 3)
	k, at := keeper(t, b)
	wantListed(t, k, lost.Blobs{})
	write(t, k, at[0], lost.Blobs{{1}: true})
	write(t, k, at[1], lost.Blobs{{2}: true})
	wantListed(t, k, lost.Blobs{{1}: true, {2}: true})
	b.Alter(b.Blobs(0, blob.KindRecord)...)
	wantListed(t, k, lost.Blobs{{2}: true})
	// An altered one doesn't stand in the way of writing.
	write(t, k, at[0], lost.Blobs{{3}: true})
	b.Spoil(1)
	wantListed(t, k, lost.Blobs{{3}: true})
}

func TestNothingLostLeavesNoRecord(t *testing.T) {
	b := storetest.New(t, 1)
	k, at := keeper(t, b)
	write(t, k, at[0], lost.Blobs{{1}: true})
	write(t, k, at[0], nil)
	if n := len(b.Blobs(0, blob.KindRecord)); n != 0 {
		t.Errorf("%d records of nothing", n)
	}
	write(t, k, at[0], nil)
	wantListed(t, k, lost.Blobs{})
}

func TestWhatStandsThereIsNotWrittenAgain(t *testing.T) {
	b := storetest.New(t, 1)
	var faulty *blobtest.Faulty
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty = blobtest.NewFaulty(location)
		return faulty
	}
	k, at := keeper(t, b)
	for range 2 {
		write(t, k, at[0], lost.Blobs{{1}: true})
	}
	if n := faulty.Calls(blobtest.Put); n != 1 {
		t.Errorf("the record was written %d times", n)
	}
	faulty.Fail(blobtest.Get, nil)
	err := k.Write(context.Background(), at[0], lost.Blobs{{2}: true}, rand.Reader)
	storetest.WantError(t, err, blobtest.ErrFault, "record of lost blobs")
}
