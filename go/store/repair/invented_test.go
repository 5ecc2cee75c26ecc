package repair_test

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/storetest"
)

func TestInventedManifestIsRemoved(t *testing.T) {
	b, unlock := cluster(t)
	b.Invent(0, "invented")
	report := check(t, unlock(), false)
	wantRows(t, report, "6 0 0 1 0 needs repair", "5 0 0 0 0 ok", "5 0 0 0 0 ok")
	if len(report.Damaged) != 0 {
		t.Errorf("damaged: %q, but nobody stored that", report.Damaged)
	}
	collect := func() error {
		_, err := gc.Run(context.Background(), unlock(), gc.Options{Grace: time.Hour})
		return err
	}
	storetest.WantError(t, collect(), nil, b.Paths[0], "'pcctl repair'")
	report = mend(t, unlock(), false)
	wantRows(t, report, "6 0 0 1 1 repaired", "5 0 0 0 0 ok", "5 0 0 0 0 ok")
	if n := report.Locations[0].Removed; n != 1 {
		t.Errorf("%d manifests were removed, want 1", n)
	}
	wantHealthy(t, unlock())
	if err := collect(); err != nil {
		t.Error(err)
	}
}

// TestManifestThatMayHaveBeenAcknowledgedIsKept: it says that an object was lost,
// and what is found elsewhere later may need its chunks.
func TestManifestThatMayHaveBeenAcknowledgedIsKept(t *testing.T) {
	for title, spoil := range map[string]func(*storetest.Testbed){
		"a location doesn't answer": func(b *storetest.Testbed) { b.Spoil(2) },
		"a quorum has it":           func(b *storetest.Testbed) { b.Invent(1, "x") },
		"others are new": func(b *storetest.Testbed) {
			for _, path := range b.Paths[1:] {
				if err := os.Remove(path + "/header"); err != nil {
					t.Fatal(err)
				}
			}
		},
		"the quorum may have been one": func(b *storetest.Testbed) { b.Quorum = 1 },
	} {
		t.Run(title, func(t *testing.T) {
			b, unlock := cluster(t)
			b.Invent(0, "x")
			spoil(b)
			for _, report := range []interface{ Err() error }{check(t, unlock(), false), mend(t, unlock(), false)} {
				storetest.WantError(t, report.Err(), nil, "1 damaged")
			}
			if n := len(b.Blobs(0, blob.KindManifest)); n != 3 {
				t.Errorf("%d manifests are left, want 3", n)
			}
		})
	}
}

// TestManifestThatWasLostIsNotTakenForInventedLater has locations added to a
// cluster whose only one has an object's manifest corrupt. Once they have the key
// header too, none of them has that manifest.
func TestManifestThatWasLostIsNotTakenForInventedLater(t *testing.T) {
	for title, fail := range map[string]blobtest.Op{"all works": 0, "nothing can be written where it is": blobtest.Put} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 3)
			b.WriteHeader(0, b.Cluster.Header)
			storetest.Put(t, b.Open(0), "object", []byte("content"))
			b.Alter(b.Blobs(0, blob.KindManifest)...)
			failing := func(op blobtest.Op) func(int, blob.Location) blob.Location {
				return func(i int, location blob.Location) blob.Location {
					faulty := blobtest.NewFaulty(location)
					if i == 0 && op != 0 {
						faulty.Fail(op, nil)
					}
					return faulty
				}
			}
			for range 2 {
				b.Wrap = failing(fail)
				storetest.WantError(t, mend(t, b.Unlock(), false).Err(), nil, "1 damaged")
				// Nor when it can't be seen for a while.
				b.Wrap = failing(blobtest.All)
				mend(t, b.Unlock(), false)
			}
			b.Wrap = nil
			storetest.WantError(t, check(t, b.Unlock(), false).Err(), nil, "1 damaged")
			// Once it is gone, nothing remembers it.
			if err := os.Remove(b.Blobs(0, blob.KindManifest)[0]); err != nil {
				t.Fatal(err)
			}
			if err := mend(t, b.Unlock(), false).Err(); err != nil {
				t.Error(err)
			}
			wantRecords(t, b, 0)
		})
	}
}

// TestLargerQuorumDoesNotMakeAManifestInvented: it may have been written with the
// usual one.
func TestLargerQuorumDoesNotMakeAManifestInvented(t *testing.T) {
	b, unlock := cluster(t)
	b.Invent(0, "x")
	b.Invent(1, "x")
	b.Quorum = 3
	storetest.WantError(t, mend(t, unlock(), false).Err(), nil, "1 damaged")
}

func TestObjectThatIsStoredUnderAnInventedNameMeanwhile(t *testing.T) {
	for _, op := range []blobtest.Op{blobtest.List, blobtest.Delete} {
		b, unlock := cluster(t)
		b.Invent(0, "fresh")
		var once sync.Once
		b.Wrap = func(i int, location blob.Location) blob.Location {
			f := blobtest.NewFaulty(location)
			lists := 0
			f.Hook(func(o blobtest.Op, _ blob.Name) {
				if o == blobtest.List {
					lists++
				}
				// The second listing, that of the chunks, comes after the
				// manifests were read.
				if i == 0 && o == op && (op != blobtest.List || lists == 2) {
					once.Do(func() {
						b.Wrap = nil
						storetest.Put(t, b.Open(), "fresh", []byte("fresh"))
					})
				}
			})
			return f
		}
		mend(t, unlock(), false)
		storetest.WantContent(t, b.Open(0), "fresh", []byte("fresh"))
	}
}
