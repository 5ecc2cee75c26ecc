package survey_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/survey"
)

// synthetic is a location with many objects of one chunk each, and chunks that none
// uses. What is in it is made when it is read.
type synthetic struct {
	blob.Location
	manifests *manifest.Sealer
	chunks    *chunk.Sealer
	// order has the objects' numbers by the first byte of their manifests' IDs,
	// used and loose those of their chunks.
	order, used, loose []uint32
	// listed are the manifests that were listed and not read yet.
	listed sync.Map
}

func newSynthetic(b *testing.B, root *keys.Root, objects, loose int) *synthetic {
	manifests, err := manifest.NewSealer(root)
	if err != nil {
		b.Fatal(err)
	}
	chunks, err := chunk.NewSealer(root)
	if err != nil {
		b.Fatal(err)
	}
	s := &synthetic{manifests: manifests, chunks: chunks}
	byFirst := func(count int, id func(n uint32) [32]byte) []uint32 {
		order := make([]uint32, count)
		first := make([]byte, count)
		for n := range order {
			order[n] = uint32(n)
			first[n] = id(uint32(n))[0]
		}
		slices.SortStableFunc(order, func(x, y uint32) int { return int(first[x]) - int(first[y]) })
		return order
	}
	s.order = byFirst(objects, func(n uint32) [32]byte { return manifests.BlobName(strconv.Itoa(int(n))).ID })
	s.used = byFirst(objects, func(n uint32) [32]byte { return chunks.Name(ref(n, 0)).ID })
	s.loose = byFirst(loose, func(n uint32) [32]byte { return chunks.Name(ref(n, 1)).ID })
	return s
}

// ref is the chunk of an object, or one that it doesn't use.
func ref(n uint32, generation uint32) chunk.Ref {
	r := chunk.Ref{Generation: generation}
	binary.BigEndian.PutUint32(r.ID[:], n)
	return r
}

func (s *synthetic) String() string { return "synthetic" }

func (s *synthetic) List(_ context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if kind == blob.KindManifest {
		for _, n := range s.order {
			name := s.manifests.BlobName(strconv.Itoa(int(n)))
			s.listed.Store(name, n)
			if err := fn(blob.Info{Name: name, Size: 200, Mark: fmt.Sprint(n)}); err != nil {
				return err
			}
		}
		return nil
	}
	used, loose := s.used, s.loose
	for len(used)+len(loose) > 0 {
		var name blob.Name
		if len(loose) > 0 {
			name = s.chunks.Name(ref(loose[0], 1))
		}
		if len(used) > 0 {
			if u := s.chunks.Name(ref(used[0], 0)); len(loose) == 0 || u.ID[0] <= name.ID[0] {
				name, used = u, used[1:]
			} else {
				loose = loose[1:]
			}
		} else {
			loose = loose[1:]
		}
		if err := fn(blob.Info{Name: name, Size: int64(10 + chunk.Overhead), Mark: fmt.Sprint(len(used))}); err != nil {
			return err
		}
	}
	return nil
}

// Get returns a manifest that was listed; it can be read once.
func (s *synthetic) Get(_ context.Context, name blob.Name, _ []byte, _ int64) ([]byte, error) {
	n, ok := s.listed.LoadAndDelete(name)
	if !ok {
		return nil, blob.ErrNotFound
	}
	number := n.(uint32)
	m := &manifest.Manifest{Name: strconv.Itoa(int(number)), Size: 10, Chunks: []chunk.Ref{ref(number, 0)}}
	return s.manifests.Seal(m, rand.Reader)
}

// BenchmarkSurvey reports what a survey takes in memory for each object of one chunk,
// and the most that the process takes meanwhile, garbage included.
func BenchmarkSurvey(b *testing.B) {
	const objects = 1_000_000
	for _, loose := range []int{0, objects} {
		b.Run(fmt.Sprintf("%d-unreferenced", loose), func(b *testing.B) {
			root := keystest.First(b).Root(b)
			set, err := quorum.New([]blob.Location{newSynthetic(b, root, objects, loose)}, 0)
			if err != nil {
				b.Fatal(err)
			}
			for range b.N {
				surveyor, err := survey.New(set, root)
				if err != nil {
					b.Fatal(err)
				}
				before := heap()
				stop, peak := watch()
				found, err := surveyor.Take(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				close(stop)
				most := <-peak
				after := heap()
				b.ReportMetric(float64(after-before)/float64(objects), "B/object")
				b.ReportMetric(float64(most-before)/(1<<20), "MiB-peak")
				if found.InUse.Len() != objects || found.Unreferenced.Len() != loose {
					b.Fatalf("%d in use, %d unreferenced", found.InUse.Len(), found.Unreferenced.Len())
				}
			}
		})
	}
}

// heap returns the bytes that are in use after a collection.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// watch samples the heap until stop is closed, then sends the most that it took.
func watch() (chan<- bool, <-chan uint64) {
	stop, peak := make(chan bool), make(chan uint64)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		var most uint64
		for {
			select {
			case <-ticker.C:
				var stats runtime.MemStats
				runtime.ReadMemStats(&stats)
				most = max(most, stats.HeapAlloc)
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	return stop, peak
}
