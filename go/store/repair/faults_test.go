package repair_test

import (
	"context"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/storetest"
)

// wrapped gives the locations of a testbed faults.
func wrapped(b *storetest.Testbed) []*blobtest.Faulty {
	faulty := make([]*blobtest.Faulty, len(b.Paths))
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty[i] = blobtest.NewFaulty(location)
		return faulty[i]
	}
	return faulty
}

// failReading has a location fail to read blobs of a kind.
func failReading(f *blobtest.Faulty, kind blob.Kind) {
	f.Hook(func(op blobtest.Op, name blob.Name) {
		switch {
		case op == blobtest.Get && name.Kind == kind:
			f.Fail(blobtest.Get, nil)
		case op == blobtest.Get:
			f.Heal()
		}
	})
}

func TestChunkAtALocationThatFailsMeanwhileIsDamaged(t *testing.T) {
	b, unlock := cluster(t)
	for _, i := range []int{1, 2} {
		for _, path := range b.Blobs(i, blob.KindChunk) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	faulty := wrapped(b)
	repo := unlock()
	failReading(faulty[0], blob.KindChunk)
	report := check(t, repo, true)
	if len(report.Damaged) != 1 {
		t.Errorf("damaged: %q, want the object whose chunks are at a location that failed", report.Damaged)
	}
}

// TestRepairReplacesWhatALocationCantPutTogether: ErrDamaged is the answer of a
// location that works.
func TestRepairReplacesWhatALocationCantPutTogether(t *testing.T) {
	for _, kind := range []blob.Kind{blob.KindManifest, blob.KindChunk} {
		b, unlock := cluster(t)
		faulty := wrapped(b)
		repo := unlock()
		var mu sync.Mutex
		written := map[blob.Name]bool{}
		faulty[1].Hook(func(op blobtest.Op, name blob.Name) {
			mu.Lock()
			defer mu.Unlock()
			written[name] = written[name] || op == blobtest.Put
			switch {
			case op == blobtest.Get && name.Kind == kind && !written[name]:
				faulty[1].Fail(blobtest.Get, blob.ErrDamaged)
			case op == blobtest.Get:
				faulty[1].Heal()
			}
		})
		report := mend(t, repo, true)
		for i, row := range report.Locations {
			if want := i == 1; row.Err != nil || (row.Corrupt > 0) != want || row.Repaired != row.Corrupt {
				t.Errorf("%s: location %d: %+v", kind, i, row)
			}
		}
	}
}

func TestRepairKeepsAnOlderVersionOverOneThatNoLocationServes(t *testing.T) {
	b, unlock := cluster(t)
	old := storetest.Content(1, chunk.Size+1)
	rollBack := b.Snapshot(2)
	b.Now = b.Now.Add(time.Hour)
	storetest.Put(t, b.Open(), "object", storetest.Content(3, 100))
	rollBack()
	faulty := wrapped(b)
	repo := unlock()
	// The manifests can be read there, but not the new version's chunk.
	failReading(faulty[0], blob.KindChunk)
	failReading(faulty[1], blob.KindChunk)
	mend(t, repo, false)
	b.Wrap = nil
	storetest.WantContent(t, b.Open(2), "object", old)
}

func TestLocationWhoseHeaderCannotBeReadIsUnreachable(t *testing.T) {
	b, unlock := cluster(t)
	faulty := make([]*blobtest.Faulty, len(b.Paths))
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty[i] = blobtest.NewFaulty(location)
		if i == 1 {
			failReading(faulty[i], blob.KindHeader)
		}
		return faulty[i]
	}
	repo := unlock()
	report := mend(t, repo, false)
	storetest.WantError(t, report.Err(), nil, "location-1", "unreachable")
	err := repo.Set.Locations()[1].Put(context.Background(), blob.Header(), nil)
	storetest.WantError(t, err, blobtest.ErrFault, "its key header can't be read: ")
	if n := faulty[1].Calls(blobtest.Put); n != 0 {
		t.Errorf("%d blobs were written to a location that may be another cluster's", n)
	}
}

func TestManifestsThatOnlyAListingHasAreNotMissing(t *testing.T) {
	b, unlock := cluster(t)
	b.Wrap = func(i int, location blob.Location) blob.Location {
		if i == 0 {
			return inventive{location}
		}
		return location
	}
	wantHealthy(t, unlock())
}

// inventive is a location that lists a manifest which it doesn't have.
type inventive struct{ blob.Location }

func (i inventive) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if err := i.Location.List(ctx, kind, fn); err != nil || kind != blob.KindManifest {
		return err
	}
	return fn(blob.Info{Name: blob.Name{Kind: kind, ID: [32]byte{0xff, 1}}, Size: 100, Mark: "mark"})
}

func TestRepairSparesWhatIsWrittenMeanwhile(t *testing.T) {
	b, unlock := cluster(t)
	for _, i := range []int{1, 2} {
		if err := os.RemoveAll(filepath.Join(b.Paths[i], "manifest")); err != nil {
			t.Fatal(err)
		}
	}
	var once sync.Once
	b.Wrap = func(i int, location blob.Location) blob.Location {
		f := blobtest.NewFaulty(location)
		f.Hook(func(op blobtest.Op, name blob.Name) {
			if op == blobtest.Put && name.Kind == blob.KindManifest {
				once.Do(func() {
					b.Wrap = nil
					b.Now = b.Now.Add(time.Hour)
					storetest.Put(t, b.Open(), "object", []byte("new"))
					storetest.Put(t, b.Open(), "deleted", []byte("new"))
				})
			}
		})
		return f
	}
	mend(t, unlock(), false)
	for i := range b.Paths {
		// The repair's first write was under way already, but it is looked
		// at once more.
		for _, name := range []string{"object", "deleted"} {
			storetest.WantContent(t, b.Open(i), name, []byte("new"))
		}
	}
}

func TestHeaderOfANewerFormatIsNeverChanged(t *testing.T) {
	b, unlock := cluster(t)
	newer := append([]byte(nil), b.Cluster.Header...)
	newer[9]++
	sum := sha256.Sum256(newer[:len(newer)-sha256.Size])
	copy(newer[len(newer)-sha256.Size:], sum[:])
	b.WriteHeader(1, newer)
	report := mend(t, unlock(), false)
	storetest.WantError(t, report.Err(), nil, "location-1", "different cluster header")
	if after, err := os.ReadFile(b.Paths[1] + "/header"); err != nil || string(after) != string(newer) {
		t.Errorf("the newer header was changed (%v)", err)
	}
}

// another is a location that reads into memory of its own.
type another struct{ blob.Location }

func (a another) Get(ctx context.Context, name blob.Name, _ []byte, limit int64) ([]byte, error) {
	return a.Location.Get(ctx, name, nil, limit)
}

func TestRepairCopiesWhatItReadWhereverThatStands(t *testing.T) {
	b, unlock := cluster(t)
	if err := os.RemoveAll(b.Paths[1]); err != nil {
		t.Fatal(err)
	}
	b.Wrap = func(_ int, location blob.Location) blob.Location { return another{location} }
	mend(t, unlock(), false)
	wantHealthy(t, unlock())
}

func TestCheckWithTooFewLocationsSaysWhatItCannotKnow(t *testing.T) {
	b, unlock := cluster(t)
	b.Spoil(1)
	if doubt := check(t, unlock(), false).Doubt; doubt != "" {
		t.Errorf("with two of three locations there is doubt: %s", doubt)
	}
	b.Spoil(2)
	doubt := check(t, unlock(), false).Doubt
	if !strings.Contains(doubt, "only 1 of 3") || !strings.Contains(doubt, "location-2: ") {
		t.Errorf("with one of three locations the doubt is %q", doubt)
	}
}
