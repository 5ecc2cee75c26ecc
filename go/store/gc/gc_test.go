package gc_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/gc"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/storetest"
)

const day = 24 * time.Hour

// bed is a testbed whose cluster can be collected.
type bed struct {
	*storetest.Testbed
	t *testing.T
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := storetest.New(t, 2)
	b.Init()
	return &bed{b, t}
}

// clock returns a clock that stands at the present time.
func (b *bed) clock() func() time.Time {
	now := b.Now
	return func() time.Time { return now }
}

func (b *bed) run(options gc.Options) (gc.Result, error) {
	if options.Grace == 0 {
		options.Grace = day
	}
	options.Now = b.clock()
	return gc.Run(context.Background(), b.Unlock(), options)
}

// want runs a collection and checks its result.
func (b *bed) want(options gc.Options, want gc.Result) {
	b.t.Helper()
	got, err := b.run(options)
	if err != nil {
		b.t.Fatal(err)
	}
	if got != want {
		b.t.Errorf("collected %+v, want %+v", got, want)
	}
}

func (b *bed) remove(name string) {
	b.t.Helper()
	if err := b.Open().Remove(context.Background(), name); err != nil {
		b.t.Fatal(err)
	}
}

func TestTwoRunsAndTheGracePeriod(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "keep", storetest.Content(1, 10))
	storetest.Put(t, b.Open(), "drop", storetest.Content(2, chunk.Size+1))
	b.want(gc.Options{}, gc.Result{InUse: 3})
	if n := len(b.Blobs(0, blob.KindRecord)); n != 0 {
		t.Errorf("a run with nothing to record left %d records", n)
	}
	b.remove("drop")
	b.want(gc.Options{DryRun: true}, gc.Result{InUse: 1, Waiting: 2})
	if n := len(b.Blobs(0, blob.KindRecord)); n != 0 {
		t.Errorf("a dry run left %d records", n)
	}
	b.want(gc.Options{}, gc.Result{InUse: 1, Waiting: 2})
	b.Now = b.Now.Add(day - time.Second)
	b.want(gc.Options{}, gc.Result{InUse: 1, Waiting: 2})
	b.Now = b.Now.Add(time.Second)
	b.want(gc.Options{DryRun: true}, gc.Result{InUse: 1, Deleted: 2})
	b.want(gc.Options{}, gc.Result{InUse: 1, Deleted: 2})
	b.want(gc.Options{}, gc.Result{InUse: 1})
	for i := range b.Paths {
		if n := len(b.Blobs(i, blob.KindChunk)); n != 1 {
			t.Errorf("location %d has %d chunks, want 1", i, n)
		}
	}
	storetest.WantContent(t, b.Open(), "keep", storetest.Content(1, 10))
}

func TestWriterDoesNotCountOnWhatIsRecorded(t *testing.T) {
	b := newBed(t)
	data := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "a", data)
	b.remove("a")
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(2 * day)
	// The put finds the chunk, but the record lists it.
	storetest.Put(t, b.Open(), "b", data)
	if n := len(b.Blobs(0, blob.KindChunk)); n != 2 {
		t.Errorf("%d chunks, want the recorded one and a new generation", n)
	}
	b.want(gc.Options{}, gc.Result{InUse: 1, Deleted: 1})
	storetest.WantContent(t, b.Open(), "b", data)
}

func TestWriteBetweenTheTwoRuns(t *testing.T) {
	b := newBed(t)
	data := storetest.Content(1, 10)
	storetest.Put(t, b.Open(), "old", data)
	b.remove("old")
	// The put has begun, and so counts on the chunk, before the first run.
	source := storetest.Source("x", data)
	open := source.Open
	source.Open = func() (io.ReadCloser, error) {
		b.want(gc.Options{}, gc.Result{Waiting: 1})
		return open()
	}
	if _, err := b.Open().Put(context.Background(), source, nil); err != nil {
		t.Fatal(err)
	}
	b.Now = b.Now.Add(2 * day)
	b.want(gc.Options{}, gc.Result{InUse: 1})
	storetest.WantContent(t, b.Open(), "x", data)
}

func TestNeedsEveryLocation(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "a", storetest.Content(1, 10))
	b.Spoil(1)
	_, err := b.run(gc.Options{})
	storetest.WantError(t, err, nil, "store: gc needs every backend, and "+b.Paths[1]+" is unreachable")
}

func TestNeedsEveryManifest(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "a", storetest.Content(1, 10))
	b.Alter(b.Blobs(0, blob.KindManifest)...)
	_, err := b.run(gc.Options{})
	storetest.WantError(t, err, nil, b.Paths[0], "corrupt", "pcctl repair")
}

// TestNothingThatANewerFormatMayNeedIsCollected: it may have come after the first run.
func TestNothingThatANewerFormatMayNeedIsCollected(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "a", storetest.Content(1, 10))
	storetest.Put(t, b.Open(), "b", storetest.Content(2, 10))
	b.remove("a")
	b.want(gc.Options{}, gc.Result{InUse: 1, Waiting: 1})
	b.Now = b.Now.Add(2 * day)
	for _, path := range b.Blobs(1, blob.KindManifest) {
		b.Upgrade(path)
	}
	for _, options := range []gc.Options{{}, {DryRun: true}} {
		_, err := b.run(options)
		storetest.WantError(t, err, nil, "store: gc needs every manifest, and "+b.Paths[1]+" has 2 that were written by a newer pcctl")
	}
	for i := range b.Paths {
		if n := len(b.Blobs(i, blob.KindChunk)); n != 2 {
			t.Errorf("location %d has %d chunks, want 2", i, n)
		}
	}
	// A tombstone that can't be read everywhere may be something else there.
	result, err := gc.Tombstones(t.Context(), b.Unlock(), gc.Options{Grace: day, Now: b.clock()})
	if err != nil || result.Incomplete != 1 || result.Deleted != 0 {
		t.Errorf("collected tombstones: %+v, %v", result, err)
	}
}

func TestRecordRolledBackInOneLocationDeletesNothing(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "a", storetest.Content(1, 10))
	b.remove("a")
	rollBack := b.Snapshot(1)
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	rollBack()
	b.Now = b.Now.Add(2 * day)
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(2 * day)
	b.want(gc.Options{}, gc.Result{Deleted: 1})
}

// TestRunWithAClockThatIsAheadDelaysNothing: what is recorded for a date to come
// would never be deleted, and what was deleted then never forgotten.
func TestRunWithAClockThatIsAheadDelaysNothing(t *testing.T) {
	const years = 10 * 365 * day
	b := newBed(t)
	left := filepath.Join(b.Paths[0], "tmp", "0123456789abcdef0123456789abcdef")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, b.Open(), "deleted", storetest.Content(1, 10))
	b.remove("deleted")
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(years)
	b.want(gc.Options{}, gc.Result{Deleted: 1, Leftovers: 1})
	storetest.Put(t, b.Open(), "waiting", storetest.Content(2, 10))
	if err := os.WriteFile(left, []byte("another half"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.remove("waiting")
	b.want(gc.Options{}, gc.Result{Waiting: 1})

	b.Now = b.Now.Add(-years)
	// Not at once: a writer may have begun just before the other run.
	b.want(gc.Options{}, gc.Result{Waiting: 1})
	b.Now = b.Now.Add(day)
	b.want(gc.Options{}, gc.Result{Deleted: 1, Leftovers: 1})
	b.Now = b.Now.Add(day)
	b.want(gc.Options{}, gc.Result{})
	keeper, err := grace.NewKeeper(b.Set(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	if listed, err := keeper.Listed(context.Background()); err != nil || len(listed.Chunks) != 0 {
		t.Errorf("the record still lists %d chunks, %v", len(listed.Chunks), err)
	}
}

func TestLeftoversOfInterruptedWrites(t *testing.T) {
	b := newBed(t)
	storetest.Put(t, b.Open(), "a", storetest.Content(1, 10))
	left := filepath.Join(b.Paths[0], "tmp", "0123456789abcdef0123456789abcdef")
	if err := os.MkdirAll(filepath.Dir(left), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.want(gc.Options{}, gc.Result{InUse: 1})
	if _, err := os.Stat(left); err != nil {
		t.Errorf("the first run removed a file that a writer may be at: %v", err)
	}
	b.Now = b.Now.Add(day)
	b.want(gc.Options{}, gc.Result{InUse: 1, Leftovers: 1})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary file is still there (%v)", err)
	}
}

func TestInterruptedPutIsReclaimed(t *testing.T) {
	b := newBed(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := b.Open().Put(ctx, store.Source{Name: "a", Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.MultiReader(
			readerOf(storetest.Content(1, 3*chunk.Size)),
			readerFunc(func([]byte) (int, error) { cancel(); return 0, ctx.Err() }),
		)), nil
	}}, nil)
	if err == nil {
		t.Fatal("an interrupted put succeeded")
	}
	waiting := len(b.Blobs(0, blob.KindChunk))
	for _, path := range b.Blobs(1, blob.KindChunk) {
		if _, err := os.Stat(filepath.Join(b.Paths[0], "chunk", filepath.Base(filepath.Dir(path)), filepath.Base(path))); err != nil {
			waiting++
		}
	}
	b.want(gc.Options{}, gc.Result{Waiting: waiting})
	b.Now = b.Now.Add(day)
	b.want(gc.Options{}, gc.Result{Deleted: waiting})
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// readerOf returns a reader of a slice.
func readerOf(b []byte) io.Reader {
	return readerFunc(func(p []byte) (int, error) {
		if len(b) == 0 {
			return 0, io.EOF
		}
		n := copy(p, b)
		b = b[n:]
		return n, nil
	})
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
