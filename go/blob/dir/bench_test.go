package dir

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// places to measure in: the disk that holds temporary files, and memory.
func benchmarkPlaces(b *testing.B, run func(b *testing.B, l *Location)) {
	for name, at := range map[string]string{"disk": os.TempDir(), "tmpfs": "/dev/shm"} {
		root, err := os.MkdirTemp(at, "bench")
		if err != nil {
			continue
		}
		b.Cleanup(func() { _ = os.RemoveAll(root) })
		b.Run(name, func(b *testing.B) {
			l, err := New(filepath.Join(root, "pc"))
			if err != nil {
				b.Fatal(err)
			}
			run(b, l)
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, size := range []int{300, 10 << 10, 4 << 20} {
		data := blobtest.Bytes(1, size)
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchmarkPlaces(b, func(b *testing.B, l *Location) {
				// Big blobs replace each other, so that the disk doesn't fill up.
				kept := int64(64)
				if size < 1<<20 {
					kept = 1 << 40
				}
				var n atomic.Int64
				b.SetBytes(int64(size))
				b.SetParallelism(4)
				b.ReportAllocs()
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := l.Put(b.Context(), blobtest.Name(blob.KindChunk, int(n.Add(1)%kept)), data); err != nil {
							b.Error(err)
						}
					}
				})
				if err := l.Flush(b.Context()); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

// BenchmarkBareFile is what BenchmarkPut of small blobs can't beat: a file
// made, synced and renamed by package os.
func BenchmarkBareFile(b *testing.B) {
	benchmarkPlaces(b, func(b *testing.B, l *Location) {
		data := blobtest.Bytes(1, 10<<10)
		if err := os.MkdirAll(l.path, 0o700); err != nil {
			b.Fatal(err)
		}
		var n atomic.Int64
		b.SetBytes(int64(len(data)))
		b.SetParallelism(4)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				path := filepath.Join(l.path, fmt.Sprint(n.Add(1)))
				f, err := os.Create(path)
				if err == nil {
					_, err = f.Write(data)
				}
				if err == nil {
					err = f.Sync()
				}
				if err == nil {
					err = f.Close()
				}
				if err == nil {
					err = os.Rename(path, path+".done")
				}
				if err != nil {
					b.Error(err)
				}
			}
		})
	})
}

func BenchmarkStat(b *testing.B) {
	benchmarkPlaces(b, func(b *testing.B, l *Location) {
		const n = 1000
		for i := range n {
			if err := l.Put(b.Context(), blobtest.Name(blob.KindChunk, i), nil); err != nil {
				b.Fatal(err)
			}
		}
		for what, from := range map[string]int{"present": 0, "absent": n} {
			names := make([]blob.Name, n)
			for i := range names {
				names[i] = blobtest.Name(blob.KindChunk, from+i)
			}
			b.Run(what, func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					if _, err := l.Stat(b.Context(), names[i%n]); (err == nil) != (from == 0) {
						b.Fatal(err)
					}
				}
			})
		}
	})
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{10 << 10, 4 << 20} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			benchmarkPlaces(b, func(b *testing.B, l *Location) {
				const n = 32
				for i := range n {
					if err := l.Put(b.Context(), blobtest.Name(blob.KindChunk, i), blobtest.Bytes(i, size)); err != nil {
						b.Fatal(err)
					}
				}
				buf := make([]byte, size)
				b.SetBytes(int64(size))
				b.ReportAllocs()
				b.ResetTimer()
				for i := range b.N {
					if _, err := l.Get(b.Context(), blobtest.Name(blob.KindChunk, i%n), buf, limit); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}

func BenchmarkList(b *testing.B) {
	benchmarkPlaces(b, func(b *testing.B, l *Location) {
		const n = 20_000
		for i := range n {
			if err := l.Put(b.Context(), blobtest.Name(blob.KindChunk, i), nil); err != nil {
				b.Fatal(err)
			}
		}
		b.ResetTimer()
		for range b.N {
			found := 0
			err := l.List(b.Context(), blob.KindChunk, func(blob.Info) error { found++; return nil })
			if err != nil || found != n {
				b.Fatal(found, err)
			}
		}
		b.ReportMetric(float64(b.Elapsed())/float64(b.N)/n, "ns/blob")
	})
}
