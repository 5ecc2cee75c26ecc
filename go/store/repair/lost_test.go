package repair_test

import (
	"context"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/storetest"
)

// rot alters all copies of all chunks.
func rot(b *storetest.Testbed) {
	for i := range b.Paths {
		b.Alter(b.Blobs(i, blob.KindChunk)...)
	}
}

// wantRecords checks how many records each location has.
func wantRecords(t *testing.T, b *storetest.Testbed, want int) {
	t.Helper()
	for i := range b.Paths {
		if n := len(b.Blobs(i, blob.KindRecord)); n != want {
			t.Errorf("location %d has %d records, want %d", i, n, want)
		}
	}
}

func TestPuttingAgainReplacesWhatIsCorruptEverywhere(t *testing.T) {
	b, unlock := cluster(t)
	content := storetest.Content(1, chunk.Size+1)
	storetest.Put(t, b.Open(), "twin", content)
	rot(b)
	report := mend(t, unlock(), true)
	storetest.WantError(t, report.Err(), nil, "2 damaged", "or put it again")
	wantRecords(t, b, 1)
	storetest.Put(t, b.Open(), "object", content)
	// The other object with the same content is whole again as well.
	storetest.WantContent(t, b.Open(), "object", content)
	storetest.WantContent(t, b.Open(), "twin", content)
	// Only reading everything shows that nothing is lost any more.
	mend(t, unlock(), false)
	wantRecords(t, b, 1)
	if err := mend(t, unlock(), true).Err(); err != nil {
		t.Error(err)
	}
	wantRecords(t, b, 0)
}

func TestLostChunkIsRememberedWhileNoObjectUsesIt(t *testing.T) {
	b, unlock := cluster(t)
	rot(b)
	mend(t, unlock(), true)
	if err := b.Open().Remove(context.Background(), "object"); err != nil {
		t.Fatal(err)
	}
	mend(t, unlock(), true)
	content := storetest.Content(1, chunk.Size+1)
	storetest.Put(t, b.Open(), "object", content)
	storetest.WantContent(t, b.Open(), "object", content)
}

func TestCopyThatComesBackEndsTheRecord(t *testing.T) {
	b, unlock := cluster(t)
	restore := b.Snapshot(2)
	rot(b)
	mend(t, unlock(), true)
	restore()
	mend(t, unlock(), true)
	wantRecords(t, b, 0)
	wantHealthy(t, unlock())
}

func TestCheckSaysHowToReplaceAndChangesNothing(t *testing.T) {
	b, unlock := cluster(t)
	rot(b)
	storetest.WantError(t, check(t, unlock(), true).Err(), nil, "1 damaged", "'pcctl repair --verify' and put it again")
	wantRecords(t, b, 0)
}

func TestPuttingAgainReplacesChunksOfAManifestThatCanNotBeRead(t *testing.T) {
	b, unlock := cluster(t)
	rot(b)
	for i := range b.Paths {
		b.Alter(b.Blobs(i, blob.KindManifest)...)
	}
	storetest.WantError(t, mend(t, unlock(), true).Err(), nil, "2 damaged", "or put it again")
	storetest.Put(t, b.Open(), "object", storetest.Content(1, chunk.Size+1))
	storetest.Put(t, b.Open(), "deleted", storetest.Content(2, 1))
	if err := mend(t, unlock(), true).Err(); err != nil {
		t.Error(err)
	}
	wantRecords(t, b, 0)
}
