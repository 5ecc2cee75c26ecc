package grace_test

import (
	"context"
	"crypto/rand"
	"io"
	"maps"
	"os"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/storetest"
)

var (
	first  = grace.Key{1}
	second = grace.Key{2}
	noon   = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
)

func keeper(t *testing.T, b *storetest.Testbed, indexes ...int) *grace.Keeper {
	t.Helper()
	k, err := grace.NewKeeper(b.Set(indexes...), b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// write writes a record with the given chunks.
func write(t *testing.T, k *grace.Keeper, chunks map[grace.Key]grace.Entry) {
	t.Helper()
	record := grace.NewRecord()
	record.Chunks = chunks
	if err := k.Write(context.Background(), record, rand.Reader); err != nil {
		t.Fatal(err)
	}
}

func TestListedIsWhatAnyLocationHas(t *testing.T) {
	b := storetest.New(t, 2)
	write(t, keeper(t, b, 0), map[grace.Key]grace.Entry{first: {Since: noon}})
	write(t, keeper(t, b, 1), map[grace.Key]grace.Entry{first: {Since: noon, Condemned: true}, second: {Since: noon}})
	listed, err := keeper(t, b).Listed(context.Background())
	if want := (map[grace.Key]bool{first: true, second: false}); err != nil || !maps.Equal(listed.Chunks, want) {
		t.Errorf("listed %v, %v, want %v", listed, err, want)
	}
}

func TestAgreedIsWhatAllLocationsHave(t *testing.T) {
	b := storetest.New(t, 2)
	later := noon.Add(time.Hour)
	write(t, keeper(t, b, 0), map[grace.Key]grace.Entry{first: {Since: noon}, second: {Since: noon}})
	write(t, keeper(t, b, 1), map[grace.Key]grace.Entry{first: {Since: later}})
	agreed, err := keeper(t, b).Agreed(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(agreed.Chunks) != 1 || !agreed.Chunks[first].Since.Equal(later) {
		t.Errorf("agreed on %v, want the first chunk since %v", agreed.Chunks, later)
	}
}

func TestAlteredRecordIsNotBelieved(t *testing.T) {
	b := storetest.New(t, 1)
	k := keeper(t, b)
	write(t, k, map[grace.Key]grace.Entry{first: {Since: noon}})
	b.Alter(b.Blobs(0, blob.KindRecord)...)
	agreed, err := k.Agreed(context.Background())
	if err != nil || len(agreed.Chunks) != 0 {
		t.Errorf("agreed on %v, %v from an altered record", agreed, err)
	}
	if err := os.Truncate(b.Blobs(0, blob.KindRecord)[0], 9); err != nil {
		t.Fatal(err)
	}
	if listed, err := k.Listed(context.Background()); err != nil || len(listed.Chunks) != 0 {
		t.Errorf("listed %v, %v from a record that was cut short", listed, err)
	}
}

func TestUnreachableLocationIsAnError(t *testing.T) {
	b := storetest.New(t, 2)
	b.Spoil(1)
	_, err := keeper(t, b).Agreed(context.Background())
	storetest.WantError(t, err, nil, b.Paths[1])
	storetest.WantError(t, keeper(t, b).Write(context.Background(), grace.NewRecord(), rand.Reader), nil, b.Paths[1])
}

// TestWriterSeesThatItsChunkWasCondemned has a collector, whose clock is far
// off, condemn the chunk of an object that is just being written.
func TestWriterSeesThatItsChunkWasCondemned(t *testing.T) {
	for title, earlier := range map[string][]byte{"new object": nil, "overwrite": []byte("earlier")} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 2)
			if earlier != nil {
				storetest.Put(t, b.Open(), "x", earlier)
			}
			data := storetest.Content(1, 10)
			source := storetest.Source("x", data)
			open := source.Open
			source.Open = func() (io.ReadCloser, error) {
				write(t, keeper(t, b), map[grace.Key]grace.Entry{chunkName(t, b, data): {Since: noon, Condemned: true}})
				return open()
			}
			_, err := b.Open().Put(context.Background(), source, nil)
			storetest.WantError(t, err, store.ErrCollected, "x: ")
			if earlier != nil {
				storetest.WantContent(t, b.Open(), "x", earlier)
			} else {
				_, err := b.Open().Stat(context.Background(), "x")
				storetest.WantError(t, err, store.ErrNotFound)
			}
		})
	}
}

// chunkName returns the blob ID of a chunk of the testbed's cluster.
func chunkName(t *testing.T, b *storetest.Testbed, data []byte) grace.Key {
	t.Helper()
	sealer, err := chunk.NewSealer(b.Cluster.Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return sealer.Name(sealer.Identify(data)).ID
}
