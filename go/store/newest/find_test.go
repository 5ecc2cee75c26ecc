package newest_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
	"powercloud.unidatum.com/go/blob/ec"
	"powercloud.unidatum.com/go/blob/pace"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
)

const object = "object"

func newSealer(t *testing.T) *manifest.Sealer {
	t.Helper()
	sealer, err := manifest.NewSealer(keystest.First(t).Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return sealer
}

// sealed returns the manifest of a version of the object with that many chunks.
func sealed(t *testing.T, sealer *manifest.Sealer, version int64, chunks int) []byte {
	t.Helper()
	m := &manifest.Manifest{Name: object, Size: int64(chunks) * chunk.Size, Chunks: make([]chunk.Ref, chunks)}
	m.Version.Time = version
	data, err := sealer.Seal(m, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func finder(t *testing.T, sealer *manifest.Sealer, locations ...blob.Location) *newest.Finder {
	t.Helper()
	set, err := quorum.New(locations, 0)
	if err != nil {
		t.Fatal(err)
	}
	return newest.NewFinder(set, sealer)
}

// serving is a location that serves one blob, or an error.
type serving struct {
	blob.Location
	data []byte
	err  error
}

func (s serving) Get(_ context.Context, _ blob.Name, buf []byte, limit int64) ([]byte, error) {
	if s.err == nil && int64(len(s.data)) > limit {
		return nil, blob.ErrTooLarge
	}
	return append(buf[:0], s.data...), s.err
}

// later returns a manifest of a later version of the format.
func later(t *testing.T, sealer *manifest.Sealer, chunks int) []byte {
	t.Helper()
	data := sealed(t, sealer, 9, chunks)
	data[7] = '9'
	data[8] ^= 1
	return data
}

// TestLaterFormatIsNoVersionFound: a copy that can't be read for that is told from
// a corrupt one, whatever its size.
func TestLaterFormatIsNoVersionFound(t *testing.T) {
	sealer := newSealer(t)
	for _, chunks := range []int{1, 8000} {
		served := []blob.Location{
			serving{data: later(t, sealer, chunks)}, serving{data: sealed(t, sealer, 1, 1)},
			serving{data: sealed(t, sealer, 2, 1)}, serving{err: blob.ErrNotFound},
		}
		want := []newest.State{newest.Newer, newest.Stale, newest.Current, newest.Missing}
		result := finder(t, sealer, served...).Find(t.Context(), sealer.BlobName(object))
		for i, c := range result.Copies {
			if c.State != want[i] || (c.State == newest.Newer) != errors.Is(c.Err, manifest.ErrNewer) {
				t.Errorf("%d chunks: location %d is in state %d (%v), want %d", chunks, i, c.State, c.Err, want[i])
			}
		}
		if result.Manifest == nil || result.Manifest.Version.Time != 2 || !result.Newer() || len(result.Unread()) != 1 || result.Behind() != 2 {
			t.Errorf("%d chunks: found %+v", chunks, result)
		}
		alone := finder(t, sealer, served[0], served[3]).Find(t.Context(), sealer.BlobName(object))
		if err := alone.Err(); alone.Manifest != nil || err == nil || !strings.Contains(err.Error(), "written by a newer pcctl") {
			t.Errorf("%d chunks: found %+v, %v", chunks, alone, err)
		}
	}
}

func TestLargeManifestsAreComparedWithSmallOnes(t *testing.T) {
	const small, large, larger = 1, 8000, 80_000
	sealer := newSealer(t)
	altered := sealed(t, sealer, 9, larger)
	altered[len(altered)-1] ^= 1
	served := []serving{
		{data: sealed(t, sealer, 1, larger)},
		{data: sealed(t, sealer, 3, large)},
		{data: sealed(t, sealer, 2, small)},
		{data: sealed(t, sealer, 3, large)},
		{data: altered},
		{err: blob.ErrNotFound},
		{err: blob.ErrTooLarge},
		{err: fmt.Errorf("one of two pieces: %w", blob.ErrDamaged)},
		{err: blobtest.ErrFault},
	}
	want := []newest.State{newest.Stale, newest.Current, newest.Stale, newest.Current,
		newest.Corrupt, newest.Missing, newest.Corrupt, newest.Corrupt, newest.Unreachable}
	// In whatever order the locations come.
	for shift := range served {
		var locations []blob.Location
		for i := range served {
			locations = append(locations, served[(i+shift)%len(served)])
		}
		result := finder(t, sealer, locations...).Find(context.Background(), sealer.BlobName(object))
		if result.Manifest == nil || result.Manifest.Version.Time != 3 || len(result.Manifest.Chunks) != large {
			t.Fatalf("shifted by %d: found the wrong version", shift)
		}
		if m, err := sealer.Open(sealer.BlobName(object), result.Blob); err != nil || m.Version != result.Manifest.Version {
			t.Errorf("shifted by %d: the blob isn't that of the version found", shift)
		}
		for i, c := range result.Copies {
			if c.State != want[(i+shift)%len(want)] {
				t.Errorf("shifted by %d: location %d is in state %d, want %d", shift, i, c.State, want[(i+shift)%len(want)])
			}
		}
		if !result.Large() {
			t.Errorf("a manifest of %d bytes isn't large", len(result.Blob))
		}
	}
}

// slow is a location that serves its blob only to those who would take the
// largest, takes its time, and notes how many do at once.
type slow struct {
	blob.Location
	data []byte

	mu        sync.Mutex
	now, most int
}

func (s *slow) Get(ctx context.Context, _ blob.Name, _ []byte, limit int64) ([]byte, error) {
	if limit < manifest.MaxBlob {
		return nil, blob.ErrTooLarge
	}
	s.count(1)
	defer s.count(-1)
	time.Sleep(time.Second)
	return s.data, ctx.Err()
}

func (s *slow) count(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now += n
	s.most = max(s.most, s.now)
}

func TestOneOfTheLargestManifestsAtATime(t *testing.T) {
	sealer := newSealer(t)
	data := sealed(t, sealer, 1, 1)
	synctest.Test(t, func(t *testing.T) {
		at := &slow{data: data}
		f := finder(t, sealer, at, at)
		var group sync.WaitGroup
		var mu sync.Mutex
		visiting := 0
		for range 16 {
			group.Go(func() {
				f.Visit(context.Background(), sealer.BlobName(object), func(result newest.Result) {
					mu.Lock()
					visiting++
					if visiting > 1 {
						t.Error("two of the largest manifests are in memory")
					}
					mu.Unlock()
					if result.Manifest == nil {
						t.Error("a manifest was not found")
					}
					time.Sleep(time.Second)
					mu.Lock()
					visiting--
					mu.Unlock()
				})
			})
		}
		group.Wait()
		if at.most != 1 {
			t.Errorf("%d of the largest manifests were read at once", at.most)
		}
	})
}

func TestWaitingForMemoryEndsWithTheContext(t *testing.T) {
	sealer := newSealer(t)
	at := &slow{data: sealed(t, sealer, 1, 1)}
	f := finder(t, sealer, at)
	ctx, cancel := context.WithCancel(context.Background())
	f.Visit(context.Background(), sealer.BlobName(object), func(newest.Result) {
		cancel()
		if result := f.Find(ctx, sealer.BlobName(object)); result.Copies[0].State != newest.Unreachable {
			t.Errorf("a read that was given up ended in state %d", result.Copies[0].State)
		}
	})
	if result := f.Find(context.Background(), sealer.BlobName(object)); result.Manifest == nil {
		t.Error(fmt.Errorf("after that nothing is found: %w", result.Err()))
	}
}

// TestLargeManifestsAreHedged: a location that stalls doesn't hold the read of a large
// manifest that others have, unless what they had turns out to be none.
func TestLargeManifestsAreHedged(t *testing.T) {
	sealer := newSealer(t)
	name, data := sealer.BlobName(object), sealed(t, sealer, 1, 8000)
	altered := sealed(t, sealer, 2, 8000)
	altered[len(altered)-1] ^= 1
	for title, c := range map[string]struct {
		others []serving
		waits  bool
		want   newest.State
	}{
		"others have it":      {[]serving{{data: data}, {data: data}}, false, newest.Unreachable},
		"one has it":          {[]serving{{data: data}, {err: blob.ErrNotFound}}, false, newest.Unreachable},
		"another has rubbish": {[]serving{{data: altered}, {err: blob.ErrNotFound}}, true, newest.Current},
		"another claims much": {[]serving{{err: blob.ErrTooLarge}, {err: blob.ErrNotFound}}, true, newest.Current},
		"none has it":         {[]serving{{err: blob.ErrNotFound}, {err: blob.ErrNotFound}}, true, newest.Current},
	} {
		synctest.Test(t, func(t *testing.T) {
			stalling := blobtest.NewFaulty(blobtest.NewMemory("./slow"))
			if err := stalling.Put(t.Context(), name, data); err != nil {
				t.Fatal(err)
			}
			set, err := quorum.New([]blob.Location{stalling, c.others[0], c.others[1]}, 0)
			if err != nil {
				t.Fatal(err)
			}
			set.Hedge()
			stalling.Stall(blobtest.Get)
			done := make(chan newest.Result, 1)
			go func() { done <- newest.NewFinder(set, sealer).Find(t.Context(), name) }()
			time.Sleep(time.Hour)
			synctest.Wait()
			if waits := len(done) == 0; waits != c.waits {
				t.Errorf("%s: it waits: %v", title, waits)
			}
			stalling.Heal()
			result := <-done
			if result.Manifest == nil || len(result.Manifest.Chunks) != 8000 {
				t.Fatalf("%s: the manifest was not found: %v", title, result.Err())
			}
			if found := result.Copies[0]; found.State != c.want || (found.Err == pace.ErrLate) == c.waits {
				t.Errorf("%s: the location that stalls is in state %d, %v", title, found.State, found.Err)
			}
			set.Close(context.Background())
		})
	}
}

// TestUpdateSparesLaterFormat: what can't be compared isn't replaced.
func TestUpdateSparesLaterFormat(t *testing.T) {
	sealer := newSealer(t)
	name := sealer.BlobName(object)
	for _, chunks := range []int{1, 8000} {
		for title, location := range map[string]blob.Location{
			"a location":           blobtest.NewMemory("./a"),
			"an erasure-coded one": coded(t),
		} {
			there := later(t, sealer, chunks)
			if err := location.Put(t.Context(), name, there); err != nil {
				t.Fatal(err)
			}
			mine := sealed(t, sealer, 2, 1)
			kept, err := finder(t, sealer, location).Update(t.Context(), location, manifest.Version{Time: 2}, name, mine, false)
			if !errors.Is(err, manifest.ErrNewer) || kept != (manifest.Version{}) {
				t.Errorf("%s, %d chunks: version %d was kept, %v", title, chunks, kept.Time, err)
			}
			if got, err := location.Get(t.Context(), name, nil, manifest.MaxBlob); err != nil || !bytes.Equal(got, there) {
				t.Errorf("%s, %d chunks: %d bytes are there, %v, want %d", title, chunks, len(got), err, len(there))
			}
		}
	}
}

// TestOlderFormatDoesntStandInForALaterOne: an erasure-coded location keeps the
// version before until a flush.
func TestOlderFormatDoesntStandInForALaterOne(t *testing.T) {
	sealer := newSealer(t)
	name, location := sealer.BlobName(object), coded(t)
	for _, data := range [][]byte{sealed(t, sealer, 1, 1), later(t, sealer, 1)} {
		if err := location.Put(t.Context(), name, data); err != nil {
			t.Fatal(err)
		}
	}
	if result := finder(t, sealer, location).Find(t.Context(), name); result.Manifest != nil || !result.Newer() {
		t.Errorf("found %+v", result)
	}
}

// coded returns an erasure-coded location.
func coded(t *testing.T) blob.Location {
	t.Helper()
	var parts []blob.Location
	for i := range 3 {
		parts = append(parts, blobtest.NewMemory(fmt.Sprintf("./%d", i)))
	}
	location, err := ec.New("ec", 2, parts)
	if err != nil {
		t.Fatal(err)
	}
	return location
}

// TestUpdate stores versions over newer and older ones, of every size.
func TestUpdate(t *testing.T) {
	sealer := newSealer(t)
	name := sealer.BlobName(object)
	rubbish := make([]byte, manifest.MaxBlob+1)
	for title, c := range map[string]struct {
		there []byte
		kept  int64
	}{
		"nothing":         {nil, 0},
		"older":           {sealed(t, sealer, 1, 1), 0},
		"newer":           {sealed(t, sealer, 3, 1), 3},
		"older and large": {sealed(t, sealer, 1, 8000), 0},
		"newer and large": {sealed(t, sealer, 3, 8000), 3},
		"rubbish":         {rubbish[:100], 0},
		"large rubbish":   {rubbish, 0},
	} {
		location := blobtest.NewMemory("./a")
		if c.there != nil {
			if err := location.Put(t.Context(), name, c.there); err != nil {
				t.Fatal(err)
			}
		}
		mine := sealed(t, sealer, 2, 1)
		kept, err := finder(t, sealer, location).Update(t.Context(), location, manifest.Version{Time: 2}, name, mine, c.there == nil)
		if err != nil || kept.Time != c.kept {
			t.Errorf("over %s: version %d was kept, %v; want %d", title, kept.Time, err, c.kept)
		}
		want := mine
		if c.kept != 0 {
			want = c.there
		}
		if got, err := location.Get(t.Context(), name, nil, manifest.MaxBlob); err != nil || !bytes.Equal(got, want) {
			t.Errorf("over %s: %d bytes are there, %v, want %d", title, len(got), err, len(want))
		}
	}
}
