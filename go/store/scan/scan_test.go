package scan_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/scan"
	"powercloud.unidatum.com/go/store/storetest"
)

// bench is a testbed whose locations count what is read from them.
type bench struct {
	*storetest.Testbed
	t       *testing.T
	faulty  []*blobtest.Faulty
	catalog *catalog.Catalog
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{Testbed: storetest.New(t, 3), t: t}
	b.Wrap = func(_ int, location blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(location)
		b.faulty = append(b.faulty, faulty)
		return faulty
	}
	var err error
	b.catalog, err = catalog.New(t.TempDir(), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// found is what a scan tells of an object: its size, and each copy's state.
type found struct {
	size   int64
	states [3]newest.State
}

// scan goes through all manifests and returns what it finds, by name, and how
// many manifests were read at each location.
func (b *bench) scan(known *catalog.Catalog, prepare func()) (map[string]found, [3]int, []error) {
	b.t.Helper()
	b.faulty = nil
	set := b.Set()
	if prepare != nil {
		prepare()
	}
	return b.scanSet(set, known)
}

func (b *bench) scanSet(set *quorum.Set, known *catalog.Catalog) (map[string]found, [3]int, []error) {
	b.t.Helper()
	sealer, err := manifest.NewSealer(b.Cluster.Root(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	objects := map[string]found{}
	scanner := scan.Scanner{Set: set, Finder: newest.NewFinder(set, sealer), Catalog: known}
	failures, err := scanner.Manifests(context.Background(), nil, nil, func(_ blob.Name, result newest.Result) {
		f := found{size: result.Manifest.Size}
		for i, c := range result.Copies {
			f.states[i] = c.State
		}
		objects[result.Manifest.Name] = f
	})
	if err != nil {
		b.t.Fatal(err)
	}
	var reads [3]int
	for i, f := range b.faulty {
		reads[i] = f.Calls(blobtest.Get)
	}
	return objects, reads, failures
}

// want compares what a scan found.
func (b *bench) want(objects map[string]found, want map[string]found) {
	b.t.Helper()
	if fmt.Sprint(objects) != fmt.Sprint(want) {
		b.t.Errorf("found %v, want %v", objects, want)
	}
}

func TestOnlyWhatChangedIsRead(t *testing.T) {
	b := newBench(t)
	want := map[string]found{}
	for i := range 20 {
		name := fmt.Sprintf("object-%d", i)
		storetest.Put(t, b.Open(), name, storetest.Content(1, i))
		want[name] = found{size: int64(i)}
	}
	objects, reads, _ := b.scan(b.catalog, nil)
	b.want(objects, want)
	if reads != [3]int{20, 20, 20} {
		t.Errorf("at first %v manifests were read", reads)
	}
	objects, reads, _ = b.scan(b.catalog, nil)
	b.want(objects, want)
	if reads != [3]int{} {
		t.Errorf("%v manifests were read though nothing has changed", reads)
	}
	storetest.Put(t, b.Open(), "object-3", storetest.Content(1, 1000))
	want["object-3"] = found{size: 1000}
	objects, reads, _ = b.scan(b.catalog, nil)
	b.want(objects, want)
	if reads != [3]int{1, 1, 1} {
		t.Errorf("%v manifests were read though one has changed", reads)
	}
	objects, reads, _ = b.scan(nil, nil)
	b.want(objects, want)
	if reads != [3]int{20, 20, 20} {
		t.Errorf("without a catalog %v manifests were read", reads)
	}
}

// TestCatalogTellsTheSame has copies in every state: what is known must be told as
// it would be read.
func TestCatalogTellsTheSame(t *testing.T) {
	b := newBench(t)
	storetest.Put(t, b.Open(), "current", []byte("1"))
	storetest.Put(t, b.Open(), "stale", []byte("1"))
	rollBack := b.Snapshot(1)
	storetest.Put(t, b.Open(), "stale", []byte("22"))
	storetest.Put(t, b.Open(), "missing", []byte("333"))
	rollBack()
	for range 2 {
		objects, _, _ := b.scan(b.catalog, nil)
		b.want(objects, map[string]found{
			"current": {size: 1},
			"stale":   {2, [3]newest.State{newest.Current, newest.Stale, newest.Current}},
			"missing": {3, [3]newest.State{newest.Current, newest.Missing, newest.Current}},
		})
	}

	// A corrupt copy is read every time.
	b.Alter(b.Blobs(2, blob.KindManifest)...)
	for range 2 {
		objects, reads, _ := b.scan(b.catalog, nil)
		if got := objects["current"].states; got != [3]newest.State{newest.Current, newest.Current, newest.Corrupt} {
			t.Errorf("a corrupt copy is told as %v", got)
		}
		if reads[2] != 3 {
			t.Errorf("%d of 3 corrupt copies were read", reads[2])
		}
	}
}

// TestWhereNothingChangedNothingIsListed has locations that tell by a mark that a
// section hasn't changed.
func TestWhereNothingChangedNothingIsListed(t *testing.T) {
	b := newBench(t)
	memories := []*blobtest.Memory{blobtest.NewMemory("a"), blobtest.NewMemory("b"), blobtest.NewMemory("c")}
	b.Wrap = func(i int, _ blob.Location) blob.Location {
		faulty := blobtest.NewFaulty(memories[i])
		b.faulty = append(b.faulty, faulty)
		return faulty
	}
	lists := func() [3]int {
		var calls [3]int
		for i, f := range b.faulty {
			calls[i] = f.Calls(blobtest.List)
		}
		return calls
	}
	want := map[string]found{}
	check := func(title string, wantReads, wantLists [3]int) {
		t.Helper()
		objects, reads, _ := b.scan(b.catalog, nil)
		b.want(objects, want)
		if got := lists(); reads != wantReads || got != wantLists {
			t.Errorf("%s: %v manifests were read, want %v, and %v sections listed, want %v", title, reads, wantReads, got, wantLists)
		}
	}
	for i := range 20 {
		name := fmt.Sprintf("object-%d", i)
		storetest.Put(t, b.Open(), name, storetest.Content(1, i))
		want[name] = found{size: int64(i)}
	}
	check("at first", [3]int{20, 20, 20}, [3]int{256, 256, 256})
	check("again", [3]int{}, [3]int{})

	rollBack := memories[1].Snapshot()
	storetest.Put(t, b.Open(), "object-3", storetest.Content(1, 1000))
	want["object-3"] = found{size: 1000}
	check("one has changed", [3]int{1, 1, 1}, [3]int{1, 1, 1})
	check("and then none", [3]int{}, [3]int{})
	rollBack()
	want["object-3"] = found{1000, [3]newest.State{1: newest.Stale}}
	check("one is old at one location", [3]int{1, 1, 1}, [3]int{0, 1, 0})
	check("and stays so", [3]int{}, [3]int{})

	sealer, err := manifest.NewSealer(b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	name := sealer.BlobName("object-4")
	if err := memories[2].Delete(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	want["object-4"] = found{4, [3]newest.State{2: newest.Missing}}
	check("one is missing at one location", [3]int{}, [3]int{0, 0, 1})
	check("and stays so", [3]int{}, [3]int{})
	for _, memory := range memories[:2] {
		if err := memory.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	delete(want, "object-4")
	check("it is gone everywhere", [3]int{}, [3]int{1, 1, 0})
	check("and stays so", [3]int{}, [3]int{})

	// What can't be read is listed each time.
	memories[0].Alter(func(name blob.Name, data []byte) []byte {
		if name == sealer.BlobName("object-5") {
			data[len(data)-1] ^= 1
		}
		return data
	})
	stored, err := memories[0].Get(t.Context(), sealer.BlobName("object-5"), nil, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	if err := memories[0].Put(t.Context(), sealer.BlobName("object-5"), stored); err != nil {
		t.Fatal(err)
	}
	want["object-5"] = found{5, [3]newest.State{0: newest.Corrupt}}
	check("one is corrupt", [3]int{1, 1, 1}, [3]int{1, 0, 0})
	check("and stays so", [3]int{1, 1, 1}, [3]int{1, 0, 0})
}

func TestLocationThatCannotBeListed(t *testing.T) {
	b := newBench(t)
	storetest.Put(t, b.Open(), "x", []byte("1"))
	b.scan(b.catalog, nil)
	objects, _, failures := b.scan(b.catalog, func() { b.faulty[0].Fail(blobtest.Reads, nil) })
	if !errors.Is(failures[0], blobtest.ErrFault) || failures[1] != nil {
		t.Errorf("the locations' errors are %v", failures)
	}
	b.want(objects, map[string]found{"x": {1, [3]newest.State{newest.Unreachable, newest.Current, newest.Current}}})
	// What is known of it outlasts that.
	objects, reads, _ := b.scan(b.catalog, nil)
	b.want(objects, map[string]found{"x": {size: 1}})
	if reads != [3]int{} {
		t.Errorf("%v manifests were read though nothing has changed", reads)
	}
}

func TestCatalogOfAnotherTimeDoesNoHarm(t *testing.T) {
	b := newBench(t)
	storetest.Put(t, b.Open(), "x", []byte("1"))
	b.scan(b.catalog, nil)
	// Removed, and everything else: nothing may be told of what isn't there.
	if err := b.Open().Remove(context.Background(), "x"); err != nil {
		t.Fatal(err)
	}
	objects, _, _ := b.scan(b.catalog, nil)
	b.want(objects, map[string]found{"x": {}})
	for i := range b.Paths {
		for _, path := range b.Blobs(i, blob.KindManifest) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	objects, _, _ = b.scan(b.catalog, nil)
	b.want(objects, map[string]found{})
}

func TestExpectedIsVisited(t *testing.T) {
	b := newBench(t)
	for i := range 10 {
		storetest.Put(t, b.Open(), fmt.Sprint(i), nil)
	}
	sealer, err := manifest.NewSealer(b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	set := b.Set()
	scanner := scan.Scanner{Set: set, Finder: newest.NewFinder(set, sealer)}
	var expected int64
	var names []string
	_, err = scanner.Manifests(context.Background(), nil, func(n int64) { expected += n }, func(_ blob.Name, result newest.Result) {
		names = append(names, result.Manifest.Name)
	})
	slices.Sort(names)
	if err != nil || expected != 10 || len(slices.Compact(names)) != 10 {
		t.Errorf("expected %d, visited %q, %v", expected, names, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	_, err = scanner.Manifests(ctx, nil, nil, func(blob.Name, newest.Result) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that it was cancelled", err)
	}
}
