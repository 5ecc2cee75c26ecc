package repair_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/storetest"
)

// contents returns what files hold.
func contents(t *testing.T, paths []string) [][]byte {
	t.Helper()
	var all [][]byte
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content)
	}
	return all
}

// wantContents checks that files hold what they held.
func wantContents(t *testing.T, paths []string, want [][]byte) {
	t.Helper()
	for i, content := range contents(t, paths) {
		if !bytes.Equal(content, want[i]) {
			t.Errorf("%s was changed", paths[i])
		}
	}
}

func TestManifestsOfANewerFormatAreLeftAlone(t *testing.T) {
	b, unlock := cluster(t)
	there := b.Blobs(1, blob.KindManifest)
	b.Upgrade(there...)
	want := contents(t, there)
	for _, report := range []interface{ Err() error }{check(t, unlock(), true), mend(t, unlock(), true)} {
		storetest.WantError(t, report.Err(), nil, b.Paths[1]+" has 2 manifests that were written by a newer pcctl")
	}
	wantContents(t, there, want)
	report := mend(t, unlock(), false)
	wantRows(t, report, "5 0 0 0 0 ok", "5 0 0 0 0 manifests of a newer pcctl", "5 0 0 0 0 ok")
	if len(report.Damaged) != 0 {
		t.Errorf("damaged: %q, but others have them", report.Damaged)
	}
}

// TestRepairMendsBesidesManifestsOfANewerFormat: what can be read is still brought to
// the locations that lack it.
func TestRepairMendsBesidesManifestsOfANewerFormat(t *testing.T) {
	b, unlock := cluster(t)
	storetest.Put(t, b.Open(), "other", storetest.Content(3, 10))
	there := b.Blobs(1, blob.KindManifest)
	b.Upgrade(there[0])
	b.Alter(there[1:]...)
	want := contents(t, there[:1])
	report := mend(t, unlock(), true)
	wantRows(t, report, "7 0 0 0 0 ok", "7 0 0 2 2 manifests of a newer pcctl", "7 0 0 0 0 ok")
	wantContents(t, there[:1], want)
}

// TestManifestsThatOnlyANewerFormatHas: nobody here can tell what they need. They are
// neither damaged nor made up, however few locations have them.
func TestManifestsThatOnlyANewerFormatHas(t *testing.T) {
	b, unlock := cluster(t)
	for _, i := range []int{0, 2} {
		for _, path := range b.Blobs(i, blob.KindManifest) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	there := b.Blobs(1, blob.KindManifest)
	b.Upgrade(there...)
	want := contents(t, there)
	chunks := len(b.Blobs(1, blob.KindChunk))
	report := mend(t, unlock(), true)
	storetest.WantError(t, report.Err(), nil, b.Paths[1], "2 manifests that were written by a newer pcctl")
	wantRows(t, report, "1 2 0 0 0 needs repair", "3 0 0 0 0 manifests of a newer pcctl", "1 2 0 0 0 needs repair")
	if len(report.Damaged) != 0 || report.Locations[1].Removed != 0 {
		t.Errorf("damaged: %q; removed: %d", report.Damaged, report.Locations[1].Removed)
	}
	for range 2 {
		b.Now = b.Now.Add(48 * time.Hour)
		_, err := gc.Run(context.Background(), unlock(), gc.Options{Grace: time.Hour, Now: func() time.Time { return b.Now }})
		storetest.WantError(t, err, nil, "store: gc needs every manifest, and "+b.Paths[1]+" has 2 that were written by a newer pcctl")
	}
	wantContents(t, there, want)
	if n := len(b.Blobs(1, blob.KindChunk)); n != chunks {
		t.Errorf("%d of %d chunks are left", n, chunks)
	}
}

// TestDamagedVersionIsRepaired: a manifest in which bits of the version alone turned
// isn't a newer one.
func TestDamagedVersionIsRepaired(t *testing.T) {
	b, unlock := cluster(t)
	there := b.Blobs(1, blob.KindManifest)
	want := contents(t, there)
	for i, path := range there {
		damaged := bytes.Clone(want[i])
		damaged[7] ^= 1 // A 2 becomes a 3.
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, mend(t, unlock(), false), "5 0 0 0 0 ok", "5 0 0 2 2 repaired", "5 0 0 0 0 ok")
	wantHealthy(t, unlock())
	wantContents(t, there, want)
}

// TestOlderVersionsDontReplaceANewerFormat: two locations have what is newer.
func TestOlderVersionsDontReplaceANewerFormat(t *testing.T) {
	b, unlock := cluster(t)
	old := storetest.Content(1, chunk.Size+1)
	rollBack := b.Snapshot(2)
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(), "object", storetest.Content(3, 100))
	rollBack()
	var there []string
	for i := range 2 {
		paths := b.Blobs(i, blob.KindManifest)
		b.Upgrade(paths...)
		there = append(there, paths...)
	}
	want := contents(t, there)
	mend(t, unlock(), true)
	wantContents(t, there, want)
	storetest.WantContent(t, b.Open(2), "object", old)
}
