package ec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// limit is more than any blob of the tests has, in bytes.
const limit = 128 << 10

// layouts are those that the tests try: the smallest, the usual ones, one with more
// parity than data, and some whose shards are never of equal length.
var layouts = []layout{{1, 2}, {1, 3}, {2, 3}, {2, 5}, {3, 4}, {4, 6}}

func (l layout) String() string { return fmt.Sprintf("%d of %d", l.data, l.total) }

// forLayouts runs a test for each of the layouts.
func forLayouts(t *testing.T, test func(t *testing.T, l layout)) {
	for _, l := range layouts {
		t.Run(l.String(), func(t *testing.T) { test(t, l) })
	}
}

var (
	chunkName    = blobtest.Name(blob.KindChunk, 1)
	manifestName = blobtest.Name(blob.KindManifest, 1)
	changeable   = []blob.Name{blob.Header(), manifestName, blobtest.Name(blob.KindRecord, 1)}
	allNames     = append([]blob.Name{chunkName}, changeable...)
)

// bed is a set over parts with faults.
type bed struct {
	*Location
	t testing.TB
	// at are the parts, under what is faulty about them.
	at     []*blobtest.Faulty
	memory []*blobtest.Memory
	clock  time.Time
}

// newBed returns a set over parts in memory.
func newBed(t testing.TB, l layout) *bed {
	t.Helper()
	b := &bed{t: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for i := range l.total {
		b.memory = append(b.memory, blobtest.NewMemory(fmt.Sprintf("./%c", 'a'+i)))
		b.at = append(b.at, blobtest.NewFaulty(b.memory[i]))
	}
	b.Location = b.over(l)
	return b
}

// over returns a set over the parts.
func (b *bed) over(l layout) *Location {
	b.t.Helper()
	var parts []blob.Location
	for _, part := range b.at {
		parts = append(parts, part)
	}
	location, err := newLocation("ec", l.data, parts, func() time.Time {
		b.clock = b.clock.Add(time.Millisecond)
		return b.clock
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return location
}

// reopen has another program use the same parts.
func (b *bed) reopen() *bed {
	b.t.Helper()
	b.Location = b.over(b.layout)
	return b
}

func (b *bed) heal() {
	for _, part := range b.at {
		part.Heal()
	}
}

func (b *bed) put(name blob.Name, data []byte) {
	b.t.Helper()
	if err := b.Put(context.Background(), name, data); err != nil {
		b.t.Fatalf("Put(%s): %v", name, err)
	}
}

func (b *bed) flush() {
	b.t.Helper()
	if err := b.Flush(context.Background()); err != nil {
		b.t.Fatalf("Flush: %v", err)
	}
}

func (b *bed) get(name blob.Name) ([]byte, error) {
	return b.Get(context.Background(), name, nil, limit)
}

// expect fails unless the blob is read.
func (b *bed) expect(name blob.Name, want []byte) {
	b.t.Helper()
	if got, err := b.get(name); err != nil || !bytes.Equal(got, want) {
		b.t.Fatalf("Get(%s) = %.40q, %v; want %.40q", name, got, err, want)
	}
}

// expectAccepted fails unless the blob is read by a reader that can tell.
func (b *bed) expectAccepted(name blob.Name, want []byte) {
	b.t.Helper()
	got, err := b.GetAccepted(context.Background(), name, nil, limit, func(data []byte) error {
		if !bytes.Equal(data, want) {
			return errors.New("it is another blob")
		}
		return nil
	})
	if err != nil || !bytes.Equal(got, want) {
		b.t.Fatalf("GetAccepted(%s) = %.40q, %v; want %.40q", name, got, err, want)
	}
}

// settle waits for what reads do behind them.
func (b *bed) settle() {
	b.t.Helper()
	if err := b.Close(context.Background()); err != nil {
		b.t.Fatalf("Close: %v", err)
	}
}

// snapshot returns all that a part holds.
func (b *bed) snapshot(part int) map[blob.Name][]byte {
	b.t.Helper()
	held := map[blob.Name][]byte{}
	for _, kind := range blob.Kinds() {
		err := b.memory[part].List(context.Background(), kind, func(info blob.Info) (err error) {
			held[info.Name], err = b.memory[part].Get(context.Background(), info.Name, nil, 1<<40)
			return err
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
	return held
}

// restore makes that all that a part holds.
func (b *bed) restore(part int, held map[blob.Name][]byte) {
	b.t.Helper()
	var err error
	for name := range b.snapshot(part) {
		err = errors.Join(err, b.memory[part].Delete(context.Background(), name))
	}
	for name, data := range held {
		err = errors.Join(err, b.memory[part].Put(context.Background(), name, data))
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// plant has a part hold this under a name, or nothing if it is nil.
func (b *bed) plant(part int, name blob.Name, data []byte) {
	b.t.Helper()
	held := b.snapshot(part)
	if held[name] = data; data == nil {
		delete(held, name)
	}
	b.restore(part, held)
}

// held returns the versions that a part holds of a blob, the newest first, as their
// sequences.
func (b *bed) held(part int, name blob.Name) []uint64 {
	b.t.Helper()
	data, err := b.memory[part].Get(context.Background(), name, nil, 1<<40)
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	records, err := parseRecords(data, name, b.layout)
	if err != nil {
		b.t.Fatalf("part %d holds no shard of %s: %v", part, name, err)
	}
	var sequences []uint64
	for _, r := range records {
		if !r.intact() {
			b.t.Errorf("part %d holds an altered shard of %s", part, name)
		}
		sequences = append(sequences, r.sequence)
	}
	return sequences
}

// whole fails unless every part holds one shard of the blob, each another one, of
// one version.
func (b *bed) whole(name blob.Name) {
	b.t.Helper()
	t, release, err := b.inspect(context.Background(), name, inspectLimit)
	if err != nil {
		b.t.Fatal(err)
	}
	defer release()
	if len(t.versions) != 1 || t.versions[0].count != b.total {
		b.t.Errorf("%s isn't whole: %d versions", name, len(t.versions))
	}
}

// forEachSubset calls fn for every subset of the parts.
func (b *bed) forEachSubset(fn func(subset []int)) {
	for size := range b.total + 1 {
		for _, subset := range subsets(b.total, size) {
			fn(subset)
		}
	}
}

// list returns the blobs of a kind.
func (b *bed) list(kind blob.Kind) (map[blob.Name]blob.Info, error) {
	found := map[blob.Name]blob.Info{}
	err := b.List(context.Background(), kind, func(info blob.Info) error {
		found[info.Name] = info
		return nil
	})
	return found, err
}

// leftovers returns what ListTemporary lists.
func (b *bed) leftovers() map[string]blob.Temporary {
	b.t.Helper()
	found := map[string]blob.Temporary{}
	err := b.ListTemporary(context.Background(), func(left blob.Temporary) error {
		found[left.Name] = left
		return nil
	})
	if err != nil {
		b.t.Fatalf("ListTemporary: %v", err)
	}
	return found
}
