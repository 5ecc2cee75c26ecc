package storetest

import (
	"context"
	"crypto/rand"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
)

// Meter adds up how much the reads of manifests that are in progress at locations
// may take of the reader's memory.
type Meter struct {
	mu        sync.Mutex
	now, most int64
}

// Wrap returns the location with its reads metered; it serves as the Wrap of a
// Testbed.
func (m *Meter) Wrap(_ int, location blob.Location) blob.Location {
	return metered{location, m}
}

// Most returns the most that it was at a time, in bytes.
func (m *Meter) Most() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most
}

func (m *Meter) add(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now += n
	m.most = max(m.most, m.now)
}

type metered struct {
	blob.Location
	meter *Meter
}

func (m metered) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) ([]byte, error) {
	if name.Kind == blob.KindManifest {
		m.meter.add(limit)
		defer m.meter.add(-limit)
	}
	return m.Location.Get(ctx, name, buf, limit)
}

// PlantManifest stores the manifest of an object with that many chunks, none of
// which are there, at all locations.
func (b *Testbed) PlantManifest(name string, chunks int) {
	b.t.Helper()
	sealer, err := manifest.NewSealer(b.Cluster.Root(b.t))
	if err != nil {
		b.t.Fatal(err)
	}
	m := &manifest.Manifest{Name: name, Size: int64(chunks) * chunk.Size, Chunks: make([]chunk.Ref, chunks)}
	m.Version.Time = b.Now.UnixNano()
	for i := range m.Chunks {
		m.Chunks[i].ID = chunk.ID{byte(i), byte(i >> 8), byte(i >> 16)}
	}
	sealed, err := sealer.Seal(m, rand.Reader)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, location := range b.Set().Locations() {
		if err := location.Put(context.Background(), sealer.BlobName(name), sealed); err != nil {
			b.t.Fatal(err)
		}
	}
}
