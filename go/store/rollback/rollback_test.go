package rollback_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/repair"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/rollback/rollbacktest"
	"powercloud.unidatum.com/go/store/storetest"
)

const unprotected = "no rollback protection this time"

// bed is a cluster with consensus, at two locations.
type bed struct {
	*storetest.Testbed
	t        *testing.T
	marks    *rollbacktest.Marks
	mu       sync.Mutex
	warnings []string
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{Testbed: storetest.New(t, 2), t: t, marks: &rollbacktest.Marks{}}
	b.Init()
	b.again()
	return b
}

// again begins another command, which warns anew.
func (b *bed) again() {
	b.warnings = nil
	b.Guard = rollback.New(b.marks, func(line string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.warnings = append(b.warnings, line)
	})
}

func (b *bed) put(name string, seed byte) {
	b.t.Helper()
	b.Now = b.Now.Add(time.Minute)
	storetest.Put(b.t, b.Open(), name, storetest.Content(seed, 10))
}

func (b *bed) remove(name string) {
	b.t.Helper()
	b.Now = b.Now.Add(time.Minute)
	if err := b.Open().Remove(context.Background(), name); err != nil {
		b.t.Fatal(err)
	}
}

// rollBack has both locations go back to what they have now.
func (b *bed) rollBack() func() {
	one, two := b.Snapshot(0), b.Snapshot(1)
	return func() { one(); two() }
}

// wantRefused checks that everything that reads fails with store: rollback, and that
// nothing is changed.
func (b *bed) wantRefused(words ...string) {
	b.t.Helper()
	ctx := context.Background()
	words = append(words, "store: rollback: ")
	before := b.Blobs(0, blob.KindManifest)
	_, err := b.Open().Stat(ctx, "x")
	storetest.WantError(b.t, err, nil, words...)
	var rolledBack *rollback.Error
	if !errors.As(err, &rolledBack) || rolledBack.Object != "x" {
		b.t.Errorf("%v is not about x", err)
	}
	list, err := b.Open().List(ctx, "")
	storetest.WantError(b.t, err, nil, words...)
	if names := storetest.Names(slices.Collect(list.Objects())); !slices.Equal(names, []string{"keep"}) {
		b.t.Errorf("listed are %v", names)
	}
	for title, run := range map[string]func() error{
		"check":  func() error { return b.report(repair.Check) },
		"repair": func() error { return b.report(repair.Repair) },
		"gc":     func() error { _, err := gc.Run(ctx, b.Unlock(), gc.Options{}); return err },
	} {
		err := run()
		if !errors.As(err, &rolledBack) {
			b.t.Errorf("%s: %v", title, err)
		}
	}
	if after := b.Blobs(0, blob.KindManifest); !slices.Equal(before, after) {
		b.t.Errorf("the manifests are %v, were %v", after, before)
	}
	storetest.WantContent(b.t, b.Open(), "keep", storetest.Content(1, 10))
}

func (b *bed) report(run func(context.Context, *repository.Repository, repair.Options) (*repair.Report, error)) error {
	report, err := run(context.Background(), b.Unlock(), repair.Options{})
	if err != nil {
		return err
	}
	for _, l := range report.Locations {
		if report.Err() != nil && l.Missing+l.Stale == 0 || l.Repaired > 0 {
			b.t.Errorf("the row is %+v", l)
		}
	}
	return report.Err()
}

// wantFine checks that nothing is wrong any more.
func (b *bed) wantFine() {
	b.t.Helper()
	if err := b.report(repair.Check); err != nil {
		b.t.Error(err)
	}
	if _, err := b.Open().List(context.Background(), ""); err != nil {
		b.t.Error(err)
	}
	if _, err := gc.Run(context.Background(), b.Unlock(), gc.Options{}); err != nil {
		b.t.Error(err)
	}
	if len(b.warnings) > 0 {
		b.t.Errorf("warned of %q", b.warnings)
	}
}

// TestRollBack has both locations go back to earlier states of an object.
func TestRollBack(t *testing.T) {
	for title, c := range map[string]struct {
		before, after func(b *bed)
		words         []string
	}{
		"overwritten": {
			func(b *bed) { b.put("x", 2) }, func(b *bed) { b.put("x", 3) },
			[]string{"x: its version of 2026-01-02T03:07:05", "newest found is of 2026-01-02T03:06:05"},
		},
		"hidden": {
			func(*bed) {}, func(b *bed) { b.put("x", 2) },
			[]string{"version of 2026-01-02T03:06:05", "no location has any"},
		},
		"removed": {
			func(b *bed) { b.put("x", 2) }, func(b *bed) { b.remove("x") },
			[]string{"x: its removal of 2026-01-02T03:07:05", "newest found is of 2026-01-02T03:06:05"},
		},
		"put again after a removal": {
			func(b *bed) { b.put("x", 2); b.remove("x") }, func(b *bed) { b.put("x", 2) },
			[]string{"x: its version of 2026-01-02T03:08:05", "newest found is of 2026-01-02T03:07:05"},
		},
	} {
		for mend, again := range map[string]func(b *bed){
			"put": func(b *bed) { b.put("x", 4); storetest.WantContent(b.t, b.Open(), "x", storetest.Content(4, 10)) },
			"rm": func(b *bed) {
				b.remove("x")
				_, err := b.Open().Stat(context.Background(), "x")
				storetest.WantError(b.t, err, store.ErrNotFound)
			},
		} {
			t.Run(title+", then "+mend, func(t *testing.T) {
				b := newBed(t)
				b.put("keep", 1)
				c.before(b)
				rollBack := b.rollBack()
				c.after(b)
				b.wantFine()
				rollBack()
				b.wantRefused(c.words...)
				// By a clock that is behind, too.
				b.Now = b.Now.Add(-time.Hour)
				again(b)
				b.wantFine()
			})
		}
	}
}

// TestFolderRolledBack has both locations go back to earlier states of a folder of the
// system's own. What is elsewhere doesn't matter there.
func TestFolderRolledBack(t *testing.T) {
	const folder = ".powercloud/things/"
	for title, c := range map[string]struct {
		after func(b *bed)
		words []string
	}{
		"hidden":    {func(b *bed) { b.put(folder+"b", 2) }, []string{"store: rollback: ", "no location has any"}},
		"removed":   {func(b *bed) { b.remove(folder + "a") }, []string{"store: rollback: " + folder + "a: its removal of "}},
		"replaced":  {func(b *bed) { b.put(folder+"b", 2); b.remove(folder + "a") }, []string{"store: rollback: "}},
		"elsewhere": {func(b *bed) { b.put("x", 2); b.put(".powercloud/others/x", 2) }, nil},
	} {
		t.Run(title, func(t *testing.T) {
			b := newBed(t)
			b.put(folder+"a", 1)
			b.put(folder+"gone", 1)
			b.remove(folder + "gone")
			list := func() error { _, err := b.Open().ListFolder(context.Background(), folder); return err }
			if err := list(); err != nil {
				t.Error(err)
			}
			rollBack := b.rollBack()
			c.after(b)
			if err := list(); err != nil {
				t.Error(err)
			}
			rollBack()
			if err := list(); err != nil || c.words != nil {
				storetest.WantError(t, err, nil, c.words...)
			}
		})
	}
}

// TestOneLocationRolledBack: the newest version wins, as ever.
func TestOneLocationRolledBack(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	rollBack := b.Snapshot(0)
	b.put("x", 3)
	rollBack()
	storetest.WantContent(t, b.Open(), "x", storetest.Content(3, 10))
}

// TestOverwriteWhileReading: what is found may be newer than its mark, and
// never passes for older.
func TestOverwriteWhileReading(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	var once sync.Once
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		faulty.Hook(func(op blobtest.Op, name blob.Name) {
			if op&(blobtest.Get|blobtest.List) != 0 {
				once.Do(func() { b.Wrap = nil; b.put("x", 3) })
			}
		})
		return faulty
	}
	s := b.Open()
	storetest.WantContent(t, s, "x", storetest.Content(3, 10))
	b.wantFine()
}

// TestFaultsOfTheNodes has the nodes fail in every way: that only costs the
// protection.
func TestFaultsOfTheNodes(t *testing.T) {
	for title, c := range map[string]struct {
		fault    rollbacktest.Fault
		lie      time.Duration
		warnings []string
	}{
		"down":    {fault: rollbacktest.Down, warnings: []string{unprotected + " (no node answers)"}},
		"stalled": {fault: rollbacktest.Stalled, warnings: []string{unprotected}},
		"alone":   {fault: rollbacktest.Alone, warnings: []string{"one node's copy, which may miss recent writes", unprotected}},
		"absurd":  {lie: 200 * 365 * 24 * time.Hour, warnings: []string{unprotected}},
	} {
		t.Run(title, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.put("keep", 1)
				b.put("x", 2)
				b.marks.Break(c.fault)
				b.marks.Lie(int64(c.lie))
				for title, run := range map[string]func(s *store.Store) error{
					"get": func(s *store.Store) error { _, err := s.Stat(context.Background(), "keep"); return err },
					"ls":  func(s *store.Store) error { _, err := s.List(context.Background(), ""); return err },
					"put": func(s *store.Store) error {
						_, err := s.Put(context.Background(), storetest.Source("x", nil), nil)
						return err
					},
					"rm":    func(s *store.Store) error { return s.Remove(context.Background(), "x") },
					"check": func(*store.Store) error { return b.report(repair.Check) },
					"gc":    func(*store.Store) error { _, err := gc.Run(context.Background(), b.Unlock(), gc.Options{}); return err },
				} {
					if title == "rm" {
						b.put("x", 3)
					}
					b.again()
					if err := run(b.Open()); err != nil {
						t.Errorf("%s: %v", title, err)
					}
					want := c.warnings
					if title != "put" && title != "rm" {
						want = want[:1]
					}
					if len(b.warnings) != len(want) {
						t.Fatalf("%s: warned of %q", title, b.warnings)
					}
					for i, words := range want {
						if !strings.Contains(b.warnings[i], words) {
							t.Errorf("%s: warned of %q, want %q", title, b.warnings, want)
						}
					}
				}
			})
		})
	}
}

// TestCallerGivesUp: that is no fault of the nodes.
func TestCallerGivesUp(t *testing.T) {
	b := newBed(t)
	b.marks.Break(rollbacktest.Stalled)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := b.Open().Stat(ctx, "x")
	storetest.WantError(t, err, context.Canceled)
	if len(b.warnings) > 0 {
		t.Errorf("warned of %q", b.warnings)
	}
}

// TestLieWithATimeToCome: what a node claims to be newer than anything there is
// passes for rolled back, until it is put again.
func TestLieWithATimeToCome(t *testing.T) {
	b := newBed(t)
	b.put("keep", 1)
	b.put("x", 2)
	year := 365 * 24 * time.Hour
	b.marks.Lie(int64(year))
	_, err := b.Open().Stat(context.Background(), "x")
	storetest.WantError(t, err, nil, "store: rollback: x", "2027-01-02", "2026-01-02")
	b.put("x", 3)
	b.marks.Lie(0)
	storetest.WantContent(t, b.Open(), "x", storetest.Content(3, 10))
	b.wantFine()
}

// TestOneNodeIsComparedWith: its copy is better than none.
func TestOneNodeIsComparedWith(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	rollBack := b.rollBack()
	b.put("x", 3)
	rollBack()
	b.marks.Break(rollbacktest.Alone)
	_, err := b.Open().Stat(context.Background(), "x")
	storetest.WantError(t, err, nil, "store: rollback: x")
}

// TestFailedWriteIsNotRecorded: it would make what is there pass for old.
func TestFailedWriteIsNotRecorded(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	before := b.marks.All()
	b.Wrap = func(i int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		if i == 1 {
			faulty.Fail(blobtest.Put, nil)
		}
		return faulty
	}
	b.Now = b.Now.Add(time.Minute)
	_, err := b.Open().Put(context.Background(), storetest.Source("x", nil), nil)
	storetest.WantError(t, err, blobtest.ErrFault)
	storetest.WantError(t, b.Open().Remove(context.Background(), "x"), blobtest.ErrFault)
	for id, mark := range b.marks.All() {
		if before[id] != mark {
			t.Errorf("recorded is %v, was %v", mark, before[id])
		}
	}
}

// TestDeletedTombstoneStaysRecorded: the object can't come back with an old location.
func TestDeletedTombstoneStaysRecorded(t *testing.T) {
	b := newBed(t)
	b.put("keep", 1)
	b.put("x", 2)
	rollBack := b.rollBack()
	b.marks.Break(rollbacktest.Down)
	b.remove("x") // So it isn't recorded yet.
	b.again()
	collect := func() (gc.TombstoneResult, error) {
		return gc.Tombstones(context.Background(), b.Unlock(), gc.Options{Now: func() time.Time { return b.Now }})
	}
	if result, err := collect(); err != nil || result.Waiting != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	_, err := collect()
	storetest.WantError(t, err, rollbacktest.ErrDown, "recording removals")
	b.marks.Break(rollbacktest.None)
	b.again()
	if result, err := collect(); err != nil || result.Deleted != 1 {
		t.Fatalf("%+v, %v", result, err)
	}
	_, err = b.Open().Stat(context.Background(), "x")
	storetest.WantError(t, err, store.ErrNotFound)
	b.wantFine()
	rollBack()
	b.wantRefused("x: its removal of")
}

// TestRolledBackTombstoneStays: the object may have been put again.
func TestRolledBackTombstoneStays(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	b.remove("x")
	rollBack := b.rollBack()
	b.put("x", 3)
	rollBack()
	for range 2 {
		result, err := gc.Tombstones(context.Background(), b.Unlock(), gc.Options{})
		if err != nil || result.Incomplete != 1 {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

// TestDamagedManifestThatIsRecordedIsNotMadeUp: only one location has it, and that
// can't be read.
func TestDamagedManifestThatIsRecordedIsNotMadeUp(t *testing.T) {
	b := newBed(t)
	b.put("x", 2)
	b.Alter(b.Blobs(0, blob.KindManifest)...)
	for _, path := range b.Blobs(1, blob.KindManifest) {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	report, err := repair.Repair(context.Background(), b.Unlock(), repair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Damaged) != 1 || len(b.Blobs(0, blob.KindManifest)) != 1 {
		t.Errorf("the report is %+v", report)
	}
}
