// Package blobtest holds what tests of locations share: a conformance suite that
// every kind of location passes, a location in memory, and one that fails on
// demand.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/blob"
)

// limit is more than any blob of the suite has, in bytes.
const limit = 8 << 20

// Name returns a name for the n-th blob of a kind; the IDs are spread evenly.
func Name(kind blob.Kind, n int) blob.Name {
	if kind == blob.KindHeader {
		return blob.Header()
	}
	return blob.Name{Kind: kind, ID: sha256.Sum256(fmt.Append(nil, kind, n))}
}

// Bytes returns size bytes that look random and are the same for the same seed.
func Bytes(seed, size int) []byte {
	source := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	data := make([]byte, size)
	_, _ = source.Read(data) // never fails
	return data
}

// Run runs the conformance suite. open returns a new, empty location each time.
func Run(t *testing.T, open func(t *testing.T) blob.Location) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, blob.Location)
	}{
		{"Empty", testEmpty},
		{"PutGet", testPutGet},
		{"Overwrite", testOverwrite},
		{"Create", testCreate},
		{"Amend", testAmend},
		{"Supersede", testSupersede},
		{"Buffer", testBuffer},
		{"Limit", testLimit},
		{"Delete", testDelete},
		{"List", testList},
		{"ListStops", testListStops},
		{"DeleteWhileListing", testDeleteWhileListing},
		{"BadName", testBadName},
		{"Cancelled", testCancelled},
		{"Concurrent", testConcurrent},
		{"SameName", testSameName},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

// put, get and list fail the test on an error.

func put(t *testing.T, location blob.Location, name blob.Name, data []byte) {
	t.Helper()
	if err := location.Put(t.Context(), name, data); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func expect(t *testing.T, location blob.Location, name blob.Name, want []byte) {
	t.Helper()
	got, err := location.Get(t.Context(), name, nil, limit)
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("Get(%s) returns %d bytes, %v; want the %d that were put", name, len(got), err, len(want))
	}
}

func list(t *testing.T, location blob.Location, kind blob.Kind) map[blob.Name]blob.Info {
	t.Helper()
	found := map[blob.Name]blob.Info{}
	var last byte
	err := location.List(t.Context(), kind, func(info blob.Info) error {
		if _, twice := found[info.Name]; twice {
			return fmt.Errorf("%s is listed twice", info.Name)
		}
		first := info.Name.ID[0]
		if first < last {
			return fmt.Errorf("%s is listed after a blob whose ID begins with %#02x", info.Name, last)
		}
		found[info.Name], last = info, first
		return nil
	})
	if err != nil {
		t.Fatalf("List(%s): %v", kind, err)
	}
	return found
}

// listedAs reports whether a listing may tell this of a blob that Stat describes:
// the same, but perhaps without the size of what isn't a chunk.
func listedAs(listed, info blob.Info) bool {
	if listed.Size == blob.SizeUnknown && info.Name.Kind != blob.KindChunk {
		listed.Size = info.Size
	}
	return listed == info
}

func testEmpty(t *testing.T, location blob.Location) {
	if err := location.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
	if location.String() == "" {
		t.Error("String is empty")
	}
	for _, kind := range blob.Kinds() {
		name := Name(kind, 0)
		if _, err := location.Get(t.Context(), name, nil, limit); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Get(%s): %v, want ErrNotFound", name, err)
		}
		if _, err := location.Stat(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Stat(%s): %v, want ErrNotFound", name, err)
		}
		if err := location.Delete(t.Context(), name); err != nil {
			t.Errorf("Delete(%s): %v", name, err)
		}
		if found := list(t, location, kind); len(found) != 0 {
			t.Errorf("List(%s): %v", kind, found)
		}
	}
	if err := location.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
}

func testPutGet(t *testing.T, location blob.Location) {
	for _, size := range []int{0, 1, 4095, 4096, 1<<20 + 1, 4<<20 + 40} {
		for _, kind := range blob.Kinds() {
			name, data := Name(kind, size), Bytes(size, size)
			put(t, location, name, bytes.Clone(data))
			expect(t, location, name, data)
			info, err := location.Stat(t.Context(), name)
			if err != nil || info.Name != name || info.Size != int64(size) || info.Mark == "" {
				t.Errorf("Stat(%s) = %+v, %v", name, info, err)
			}
			if listed, ok := list(t, location, kind)[name]; !ok || !listedAs(listed, info) {
				t.Errorf("List tells %+v, Stat %+v", listed, info)
			}
		}
	}
	if err := location.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
	if err := location.Probe(t.Context()); err != nil {
		t.Errorf("Probe: %v", err)
	}
}

func testOverwrite(t *testing.T, location blob.Location) {
	for _, kind := range blob.Kinds() {
		name := Name(kind, 1)
		mark := ""
		for round, size := range []int{1000, 1000, 10, 2 << 20, 0} {
			data := Bytes(round, size)
			put(t, location, name, data)
			clear(data) // Put must not keep it
			expect(t, location, name, Bytes(round, size))
			info, err := location.Stat(t.Context(), name)
			if err != nil || info.Mark == mark || info.Size != int64(size) {
				t.Errorf("Stat = %+v, %v after the mark %s", info, err, mark)
			}
			mark = info.Mark
		}
	}
}

func testBuffer(t *testing.T, location blob.Location) {
	name, data := Name(blob.KindChunk, 1), Bytes(1, 5000)
	put(t, location, name, data)
	for _, test := range []struct {
		length, capacity int
		reused           bool
	}{{0, 0, false}, {10, 4999, false}, {0, 5000, true}, {6000, 6000, true}, {1, 9000, true}} {
		buf := make([]byte, test.length, test.capacity)
		got, err := location.Get(t.Context(), name, buf, limit)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("Get: %d bytes, %v", len(got), err)
		}
		if reused := cap(buf) > 0 && &buf[:1][0] == &got[0]; reused != test.reused {
			t.Errorf("a buffer of capacity %d was used: %v", test.capacity, reused)
		}
	}
}

func testLimit(t *testing.T, location blob.Location) {
	name, data := Name(blob.KindManifest, 1), Bytes(1, 1000)
	put(t, location, name, data)
	if got, err := location.Get(t.Context(), name, nil, 1000); err != nil || !bytes.Equal(got, data) {
		t.Errorf("Get at the limit: %d bytes, %v", len(got), err)
	}
	for _, limit := range []int64{999, 1, 0} {
		if got, err := location.Get(t.Context(), name, make([]byte, 2000), limit); !errors.Is(err, blob.ErrTooLarge) || len(got) != 0 {
			t.Errorf("Get with limit %d: %d bytes, %v; want ErrTooLarge", limit, len(got), err)
		}
	}
}

func testDelete(t *testing.T, location blob.Location) {
	for _, kind := range blob.Kinds() {
		name, other := Name(kind, 1), Name(blob.KindChunk, 2)
		put(t, location, name, []byte("data"))
		put(t, location, other, []byte("other"))
		for range 2 {
			if err := location.Delete(t.Context(), name); err != nil {
				t.Errorf("Delete: %v", err)
			}
		}
		if _, err := location.Stat(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Stat after Delete: %v", err)
		}
		if found := list(t, location, kind); len(found) != 0 && kind != blob.KindChunk {
			t.Errorf("List after Delete: %v", found)
		}
		expect(t, location, other, []byte("other"))
	}
	if err := location.Flush(t.Context()); err != nil {
		t.Errorf("Flush: %v", err)
	}
}

func testList(t *testing.T, location blob.Location) {
	const each = 100
	for _, kind := range blob.Kinds()[1:] {
		for n := range each {
			put(t, location, Name(kind, n), Bytes(n, n))
		}
	}
	for _, kind := range blob.Kinds()[1:] {
		found := list(t, location, kind)
		if len(found) != each {
			t.Errorf("List(%s) lists %d of %d", kind, len(found), each)
		}
		for n := range each {
			info := found[Name(kind, n)]
			if want := (blob.Info{Name: Name(kind, n), Size: int64(n), Mark: info.Mark}); !listedAs(info, want) || info.Mark == "" {
				t.Errorf("List(%s) tells %+v of a blob of %d bytes", kind, info, n)
			}
		}
	}
}

func testListStops(t *testing.T, location blob.Location) {
	for _, kind := range blob.Kinds() {
		put(t, location, Name(kind, 1), nil)
		put(t, location, Name(kind, 2), nil)
		want := errors.New("enough")
		calls := 0
		if err := location.List(t.Context(), kind, func(blob.Info) error { calls++; return want }); err != want || calls != 1 {
			t.Errorf("List(%s) returns %v after %d calls, want the error of the first", kind, err, calls)
		}
	}
}

func testDeleteWhileListing(t *testing.T, location blob.Location) {
	const n = 200
	for i := range n {
		put(t, location, Name(blob.KindChunk, i), []byte("x"))
	}
	err := location.List(t.Context(), blob.KindChunk, func(info blob.Info) error {
		return location.Delete(t.Context(), info.Name)
	})
	if err != nil {
		t.Fatalf("List: %v", err)
	}
	if left := list(t, location, blob.KindChunk); len(left) != 0 {
		t.Errorf("%d blobs were not listed", len(left))
	}
}

func testBadName(t *testing.T, location blob.Location) {
	for _, name := range []blob.Name{{}, {Kind: 9}, {Kind: blob.KindHeader, ID: [blob.IDSize]byte{1}}} {
		_, getErr := location.Get(t.Context(), name, nil, limit)
		_, statErr := location.Stat(t.Context(), name)
		for _, err := range []error{
			location.Put(t.Context(), name, nil), getErr, statErr, location.Delete(t.Context(), name),
		} {
			if err == nil || errors.Is(err, blob.ErrNotFound) {
				t.Errorf("%v is taken for a name: %v", name, err)
			}
		}
	}
	for _, kind := range []blob.Kind{0, 9} {
		if err := location.List(t.Context(), kind, func(blob.Info) error { return nil }); err == nil {
			t.Errorf("List(%v) succeeds", kind)
		}
	}
}

func testCancelled(t *testing.T, location blob.Location) {
	name := Name(blob.KindChunk, 1)
	put(t, location, name, []byte("kept"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, getErr := location.Get(ctx, name, nil, limit)
	_, statErr := location.Stat(ctx, name)
	for what, err := range map[string]error{
		"Probe": location.Probe(ctx), "Put": location.Put(ctx, name, []byte("new")), "Get": getErr, "Stat": statErr,
		"Delete": location.Delete(ctx, name), "Flush": location.Flush(ctx),
		"List": location.List(ctx, blob.KindChunk, func(blob.Info) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s returns %v, want context.Canceled", what, err)
		}
	}
	expect(t, location, name, []byte("kept"))
	if err := location.Flush(t.Context()); err != nil {
		t.Errorf("Flush after a cancelled one: %v", err)
	}
	noTemporaries(t, location)
}

func noTemporaries(t *testing.T, location blob.Location) {
	t.Helper()
	if holder, ok := location.(blob.Temporaries); ok {
		err := holder.ListTemporary(t.Context(), func(left blob.Temporary) error {
			return fmt.Errorf("temporary %s is left", left.Name)
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func testConcurrent(t *testing.T, location blob.Location) {
	const workers, each = 8, 40
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := range each {
				n := worker*each + i
				name, data := Name(blob.KindChunk, n), Bytes(n, 100+n)
				if err := location.Put(t.Context(), name, data); err != nil {
					t.Errorf("Put: %v", err)
				}
				if got, err := location.Get(t.Context(), name, nil, limit); err != nil || !bytes.Equal(got, data) {
					t.Errorf("Get: %v", err)
				}
				if i%10 == 0 {
					if err := location.Flush(t.Context()); err != nil {
						t.Errorf("Flush: %v", err)
					}
				}
				if i%2 == 1 {
					if err := location.Delete(t.Context(), name); err != nil {
						t.Errorf("Delete: %v", err)
					}
				}
			}
		})
	}
	wait.Wait()
	if found := list(t, location, blob.KindChunk); len(found) != workers*each/2 {
		t.Errorf("%d blobs are left, want %d", len(found), workers*each/2)
	}
	noTemporaries(t, location)
}

// testCreate has several create one blob at once, at locations that can tell who
// was first.
func testCreate(t *testing.T, location blob.Location) {
	creator, ok := location.(blob.Creator)
	if !ok {
		t.Skip("the location is no Creator")
	}
	for _, kind := range blob.Kinds() {
		name := Name(kind, 1)
		var wait sync.WaitGroup
		var mu sync.Mutex
		var created [][]byte
		for i := range 8 {
			wait.Go(func() {
				data := Bytes(i, 1000)
				switch err := creator.Create(t.Context(), name, data); {
				case err == nil:
					mu.Lock()
					created = append(created, data)
					mu.Unlock()
				case !errors.Is(err, blob.ErrExists):
					t.Errorf("Create(%s): %v", name, err)
				}
			})
		}
		wait.Wait()
		if len(created) != 1 {
			t.Fatalf("%d of 8 created %s", len(created), name)
		}
		expect(t, location, name, created[0])
		if err := errors.Join(location.Flush(t.Context()), location.Delete(t.Context(), name)); err != nil {
			t.Fatal(err)
		}
		if err := creator.Create(t.Context(), name, []byte("again")); err != nil {
			t.Errorf("Create(%s) after Delete: %v", name, err)
		}
		expect(t, location, name, []byte("again"))
	}
	noTemporaries(t, location)
}

// testSameName has several write one name while others read it: every reader
// sees one writer's data, whole.
func testSameName(t *testing.T, location blob.Location) {
	const writers, rounds, size = 4, 20, 100_000
	name := Name(blob.KindManifest, 1)
	put(t, location, name, bytes.Repeat([]byte{0}, size))
	var wait sync.WaitGroup
	for writer := range writers {
		wait.Go(func() {
			data := bytes.Repeat([]byte{byte(writer + 1)}, size)
			for range rounds {
				if err := location.Put(t.Context(), name, data); err != nil {
					t.Errorf("Put: %v", err)
				}
			}
		})
		wait.Go(func() {
			for range rounds {
				got, err := location.Get(t.Context(), name, nil, limit)
				if err != nil || len(got) != size || !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
					t.Errorf("Get returns %d bytes of a mixture, %v", len(got), err)
				}
			}
		})
	}
	wait.Wait()
	noTemporaries(t, location)
}
