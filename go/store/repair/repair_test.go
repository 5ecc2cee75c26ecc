package repair_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/storetest"
)

// cluster returns a testbed with a cluster over three locations that holds an
// object of two chunks and a deleted one, and a function that unlocks it.
func cluster(t *testing.T) (*storetest.Testbed, func() *repository.Repository) {
	t.Helper()
	b := storetest.New(t, 3)
	b.Init()
	storetest.Put(t, b.Open(), "object", storetest.Content(1, chunk.Size+1))
	storetest.Put(t, b.Open(), "deleted", storetest.Content(2, 1))
	if err := b.Open().Remove(context.Background(), "deleted"); err != nil {
		t.Fatal(err)
	}
	return b, func() *repository.Repository { return b.Unlock() }
}

// row is what a report says of a location.
func row(l repair.LocationReport) string {
	return fmt.Sprintf("%d %d %d %d %d %s", l.Blobs, l.Missing, l.Stale, l.Corrupt, l.Repaired, l.Status())
}

// wantRows checks what a report says of the locations.
func wantRows(t *testing.T, report *repair.Report, want ...string) {
	t.Helper()
	for i, l := range report.Locations {
		if got := row(l); got != want[i] {
			t.Errorf("location %d: %q, want %q", i, got, want[i])
		}
	}
}

func check(t *testing.T, repo *repository.Repository, verify bool) *repair.Report {
	t.Helper()
	report, err := repair.Check(context.Background(), repo, repair.Options{Verify: verify})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func mend(t *testing.T, repo *repository.Repository, verify bool) *repair.Report {
	t.Helper()
	report, err := repair.Repair(context.Background(), repo, repair.Options{Verify: verify})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// wantHealthy checks that everything is in order everywhere.
func wantHealthy(t *testing.T, repo *repository.Repository) {
	t.Helper()
	report := check(t, repo, true)
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	wantRows(t, report, "5 0 0 0 0 ok", "5 0 0 0 0 ok", "5 0 0 0 0 ok")
}

// TestCheckReadsManifestsThatAreKnown has bits rot in a manifest, which no version
// mark tells, once this machine knows what it says.
func TestCheckReadsManifestsThatAreKnown(t *testing.T) {
	b, unlock := cluster(t)
	known, err := catalog.New(t.TempDir(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	repo := unlock()
	repo.Catalog = known
	if _, err := gc.Run(context.Background(), repo, gc.Options{Grace: time.Hour}); err != nil {
		t.Fatal(err)
	}
	path := b.Blobs(1, blob.KindManifest)[0]
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	b.Alter(path)
	if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
		t.Fatal(err)
	}
	wantRows(t, check(t, repo, false), "5 0 0 0 0 ok", "5 0 0 1 0 needs repair", "5 0 0 0 0 ok")
}

func TestHealthy(t *testing.T) {
	_, unlock := cluster(t)
	wantHealthy(t, unlock())
	report := check(t, unlock(), false)
	if report.Objects != 1 || report.Deleted != 1 || report.InUse != 2 || report.Unreferenced != 1 {
		t.Errorf("counted %d objects, %d deleted, %d in use, %d unreferenced, want 1, 1, 2, 1",
			report.Objects, report.Deleted, report.InUse, report.Unreferenced)
	}
}

func TestLostLocation(t *testing.T) {
	b, unlock := cluster(t)
	if err := os.RemoveAll(b.Paths[1]); err != nil {
		t.Fatal(err)
	}
	report := check(t, unlock(), false)
	wantRows(t, report, "5 0 0 0 0 ok", "0 5 0 0 0 needs repair", "5 0 0 0 0 ok")
	storetest.WantError(t, report.Err(), repair.ErrDiffer)
	report = mend(t, unlock(), false)
	wantRows(t, report, "5 0 0 0 0 ok", "0 5 0 0 5 repaired", "5 0 0 0 0 ok")
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	wantHealthy(t, unlock())
}

func TestStaleManifest(t *testing.T) {
	b, unlock := cluster(t)
	rollBack := b.Snapshot(2)
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(), "object", storetest.Content(3, chunk.Size+1))
	rollBack()
	wantRows(t, check(t, unlock(), false), "5 0 0 0 0 ok", "5 0 0 0 0 ok", "3 2 1 0 0 needs repair")
	wantRows(t, mend(t, unlock(), false), "5 0 0 0 0 ok", "5 0 0 0 0 ok", "3 2 1 0 3 repaired")
	wantHealthy(t, unlock())
}

func TestCorruptCopies(t *testing.T) {
	b, unlock := cluster(t)
	b.Alter(b.Blobs(0, blob.KindManifest)[0])
	b.Alter(b.Blobs(1, blob.KindChunk)...)
	wantRows(t, check(t, unlock(), false), "5 0 0 1 0 needs repair", "5 0 0 0 0 ok", "5 0 0 0 0 ok")
	wantRows(t, check(t, unlock(), true), "5 0 0 1 0 needs repair", "5 0 0 2 0 needs repair", "5 0 0 0 0 ok")
	wantRows(t, mend(t, unlock(), true), "5 0 0 1 1 repaired", "5 0 0 2 2 repaired", "5 0 0 0 0 ok")
	wantHealthy(t, unlock())
}

func TestTruncatedChunkIsFoundByListing(t *testing.T) {
	b, unlock := cluster(t)
	for _, path := range b.Blobs(1, blob.KindChunk) {
		if err := os.Truncate(path, 10); err != nil {
			t.Fatal(err)
		}
	}
	wantRows(t, mend(t, unlock(), false), "5 0 0 0 0 ok", "5 0 0 2 2 repaired", "5 0 0 0 0 ok")
	wantHealthy(t, unlock())
}

func TestRepairDoesNotSpreadCorruption(t *testing.T) {
	b, unlock := cluster(t)
	b.Alter(b.Blobs(0, blob.KindChunk)...)
	if err := os.RemoveAll(b.Paths[1]); err != nil {
		t.Fatal(err)
	}
	// Without --verify the listing shows nothing, but what is copied is
	// authenticated: the copy comes from the third location, and the first
	// is mended on the way.
	report := mend(t, unlock(), false)
	wantRows(t, report, "5 0 0 2 2 repaired", "0 5 0 0 5 repaired", "5 0 0 0 0 ok")
	wantHealthy(t, unlock())
}

func TestDamaged(t *testing.T) {
	b, unlock := cluster(t)
	for i := range b.Paths {
		for _, path := range b.Blobs(i, blob.KindChunk) {
			if info, err := os.Stat(path); err != nil || info.Size() > chunk.Size {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	report := mend(t, unlock(), false)
	if len(report.Damaged) != 1 || report.Damaged[0] != "object" {
		t.Errorf("damaged: %q, want the object", report.Damaged)
	}
	storetest.WantError(t, report.Err(), nil, "1 damaged")
}

func TestRepairKeepsAnOlderVersionOverADamagedOne(t *testing.T) {
	b, unlock := cluster(t)
	old := storetest.Content(1, chunk.Size+1)
	rollBack := b.Snapshot(2)
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(), "object", storetest.Content(3, 100))
	rollBack()
	for i := range 2 {
		for _, path := range b.Blobs(i, blob.KindChunk) {
			if info, err := os.Stat(path); err == nil && info.Size() == 100+int64(chunk.Overhead) {
				b.Alter(path)
			}
		}
	}
	report := mend(t, unlock(), true)
	storetest.WantError(t, report.Err(), nil, "1 damaged")
	// The location that has the old version whole must not have lost it.
	storetest.WantContent(t, b.Open(2), "object", old)
}

func TestUnreadableManifest(t *testing.T) {
	b, unlock := cluster(t)
	for i := range b.Paths {
		b.Alter(b.Blobs(i, blob.KindManifest)...)
	}
	report := check(t, unlock(), false)
	if len(report.Damaged) != 2 {
		t.Errorf("damaged: %q, want two manifests", report.Damaged)
	}
	storetest.WantError(t, report.Err(), nil, "2 damaged")
}

func TestUnreachableLocation(t *testing.T) {
	b, unlock := cluster(t)
	b.Spoil(1)
	report := mend(t, unlock(), true)
	if report.Locations[1].Err == nil {
		t.Errorf("row %q for a location that is a file", row(report.Locations[1]))
	}
	storetest.WantError(t, report.Err(), nil, "location-1", "unreachable: ")
}

func TestHeaders(t *testing.T) {
	b, unlock := cluster(t)
	header := func(i int) string { return b.Paths[i] + "/header" }
	if err := os.Remove(header(0)); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(header(1), 20); err != nil {
		t.Fatal(err)
	}
	wantRows(t, check(t, unlock(), false), "4 1 0 0 0 needs repair", "5 0 0 1 0 needs repair", "5 0 0 0 0 ok")
	wantRows(t, mend(t, unlock(), false), "4 1 0 0 1 repaired", "5 0 0 1 1 repaired", "5 0 0 0 0 ok")
	wantHealthy(t, unlock())
}

func TestForeignHeaderIsReportedAndNeverChanged(t *testing.T) {
	b, unlock := cluster(t)
	foreign := keystest.Second(t).Header
	b.WriteHeader(1, foreign)
	report := mend(t, unlock(), false)
	if len(report.Foreign) != 1 || report.Foreign[0] != b.Paths[1] {
		t.Errorf("foreign: %q, want %s", report.Foreign, b.Paths[1])
	}
	storetest.WantError(t, report.Err(), nil, "location-1", "different cluster header")
	if after, err := os.ReadFile(b.Paths[1] + "/header"); err != nil || string(after) != string(foreign) {
		t.Errorf("the foreign header was changed (%v)", err)
	}
}

func TestConflictingHeadersAreReportedAndNeverChanged(t *testing.T) {
	b, unlock := cluster(t)
	header, err := keys.ParseHeader(b.Cluster.Header)
	if err != nil {
		t.Fatal(err)
	}
	var written [][]byte
	for i := range 2 {
		slot, _, err := header.NewRecoverySlot(rand.Reader, b.Cluster.Root(t), 9)
		if err != nil {
			t.Fatal(err)
		}
		next, err := header.WithSlots(b.Cluster.Root(t), append(slices.Clone(header.Slots), slot))
		if err != nil {
			t.Fatal(err)
		}
		written = append(written, next.Marshal())
		b.WriteHeader(i, next.Marshal())
	}
	if err := os.Remove(b.Paths[2] + "/header"); err != nil {
		t.Fatal(err)
	}
	report := mend(t, unlock(), false)
	storetest.WantError(t, report.Err(), nil, "location-0", "location-1", "same age")
	if len(report.Foreign) != 1 {
		t.Errorf("reported as different: %q, want one of the two", report.Foreign)
	}
	for i, want := range written {
		if after, err := os.ReadFile(b.Paths[i] + "/header"); err != nil || !bytes.Equal(after, want) {
			t.Errorf("the header at location %d was changed (%v)", i, err)
		}
	}
	if _, err := os.Stat(b.Paths[2] + "/header"); err == nil {
		t.Error("one of two headers of the same age was spread")
	}
	// Data can be read and written meanwhile.
	storetest.Put(t, b.Open(), "object", []byte("new"))
	// Once somebody has decided, repair goes on.
	if err := os.Remove(b.Paths[0] + "/header"); err != nil {
		t.Fatal(err)
	}
	if err := mend(t, unlock(), false).Err(); err != nil {
		t.Error(err)
	}
	for i := range b.Paths {
		if after, err := os.ReadFile(b.Paths[i] + "/header"); err != nil || !bytes.Equal(after, written[1]) {
			t.Errorf("location %d doesn't have the header that was kept (%v)", i, err)
		}
	}
}
