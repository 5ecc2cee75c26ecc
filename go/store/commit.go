package store

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/tombstones"
	"powercloud.unidatum.com/go/store/workers"
)

// manifestsAtOnce is how many manifests of a batch are written at once, if no
// location is far away. They are small: a batch has few of a large object.
const manifestsAtOnce = 16

// batch is a number of objects that are committed together.
type batch struct {
	objects []*pending
	names   map[string]bool
	bytes   int64

	// settled is closed once the batch is complete and all its chunks are
	// stored.
	settled chan struct{}
	mu      sync.Mutex
	// outstanding counts the chunks that are not stored yet, and one more
	// until the batch is complete.
	outstanding int
}

func newBatch() *batch {
	return &batch{names: map[string]bool{}, settled: make(chan struct{}), outstanding: 1}
}

// add changes the number of outstanding chunks.
func (b *batch) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outstanding += n
	if b.outstanding == 0 {
		close(b.settled)
	}
}

// full reports whether the batch should be committed before it takes the next
// object.
func (b *batch) full() bool {
	return len(b.objects) >= batchObjects || b.bytes >= batchBytes
}

// pending is an object whose manifest isn't written yet.
type pending struct {
	source Source
	batch  *batch
	size   int64

	mu   sync.Mutex
	refs []chunk.Ref
	// err is why the source can't be stored.
	err error

	// mark is what the nodes have recorded of the object before.
	mark rollback.Mark
	// earlier is what was found before the manifest was written.
	earlier  *manifest.Manifest
	manifest *manifest.Manifest
	// committed is set once a quorum of locations has the object.
	committed bool
}

// grow adds a chunk of n bytes that is yet to be stored.
func (p *pending) grow(n int) {
	p.size += int64(n)
	p.batch.add(1)
	p.mu.Lock()
	p.refs = append(p.refs, chunk.Ref{})
	p.mu.Unlock()
}

// chunkStored records where a chunk was stored.
func (p *pending) chunkStored(index int, ref chunk.Ref) {
	p.mu.Lock()
	p.refs[index] = ref
	p.mu.Unlock()
	p.batch.add(-1)
}

// fail notes why a source can't be stored. The first reason stays.
func (p *pending) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = &SourceError{p.source.Name, err}
	}
}

// failed returns why a source can't be stored, or nil.
func (p *pending) failed() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// commitBatches commits one batch after the other.
func (w *writer) commitBatches(ctx context.Context) error {
	for {
		select {
		case b, ok := <-w.batches:
			if !ok {
				return nil
			}
			if err := w.commit(ctx, b); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// commit makes the objects of a batch visible and durable: first their chunks
// are synced, then their manifests are written.
func (w *writer) commit(ctx context.Context, b *batch) error {
	select {
	case <-b.settled:
	case <-ctx.Done():
		return ctx.Err()
	}
	// Before the manifests are written: what is being deleted then.
	removals, err := w.store.tombstones.Removals(ctx)
	if err != nil {
		return err
	}
	w.leaveOut(removals, b.objects)
	if err := w.readMarks(ctx, b.objects); err != nil {
		return err
	}
	b.objects = slices.DeleteFunc(b.objects, func(p *pending) bool {
		err := p.failed()
		if err != nil {
			w.failed = append(w.failed, err)
		}
		return err != nil
	})
	if len(b.objects) == 0 {
		return nil
	}
	if err := w.to.Flush(ctx); err != nil {
		return err
	}
	large, err := w.commitObjects(ctx, removals, b.objects)
	for _, p := range large {
		if err == nil {
			_, err = w.commitObjects(ctx, removals, []*pending{p})
		}
	}
	var stored []Object
	for _, p := range b.objects {
		if p.committed {
			stored = append(stored, object(p.manifest))
		}
	}
	if len(stored) > 0 {
		w.stored(stored)
	}
	return err
}

// commitObjects commits objects whose chunks are synced: their manifests are
// written and synced, then it is made sure that they stay, and the collectors'
// records are looked at once more; removals is what one said before.
//
// The manifests that they replace are kept until then. To bound the memory that
// takes, an object that replaces one with a large manifest isn't committed
// together with others: it is left out and returned.
func (w *writer) commitObjects(ctx context.Context, removals *tombstones.Removals, objects []*pending) (large []*pending, err error) {
	var mu sync.Mutex
	err = w.store.eachObject(ctx, objects, func(ctx context.Context, p *pending) error {
		earlier := w.store.find(ctx, p.source.Name)
		if earlier.Large() && len(objects) > 1 {
			mu.Lock()
			defer mu.Unlock()
			large = append(large, p)
			return nil
		}
		p.earlier = earlier.Manifest
		return w.writeManifest(ctx, p, earlier)
	})
	if err != nil {
		return nil, err
	}
	if len(large) > 0 {
		objects = slices.DeleteFunc(slices.Clone(objects), func(p *pending) bool { return slices.Contains(large, p) })
	}
	if err := w.to.Flush(ctx); err != nil {
		return nil, err
	}
	var written []*manifest.Manifest
	for _, p := range objects {
		written = append(written, p.manifest)
	}
	if err := w.store.settle(ctx, w.to, written); err != nil {
		return nil, err
	}
	if err := w.checkCollected(ctx, objects); err != nil {
		return nil, err
	}
	if err := w.store.stay(ctx, w.to, removals, written); err != nil {
		return nil, err
	}
	if err := w.store.recordMarks(ctx, written); err != nil {
		return nil, err
	}
	for _, p := range objects {
		p.committed, p.earlier = true, nil
	}
	return large, nil
}

// eachObject runs a step for objects, several at once.
func (s *Store) eachObject(ctx context.Context, objects []*pending, step func(context.Context, *pending) error) error {
	return workers.Each(ctx, s.atOnce(), objects, func(ctx context.Context, p *pending) error {
		if err := step(ctx, p); err != nil {
			return fmt.Errorf("%s: %w", p.source.Name, err)
		}
		return nil
	})
}

// atOnce returns how many small blobs are worth working on at once.
func (s *Store) atOnce() int { return max(manifestsAtOnce, s.set.Concurrency()) }

// writeManifest writes an object's manifest, newer than any that is there.
func (w *writer) writeManifest(ctx context.Context, p *pending, earlier newest.Result) error {
	p.manifest = &manifest.Manifest{
		Name: p.source.Name, Size: p.size, Chunks: p.refs,
		FileMode: uint32(p.source.FileMode.Perm()),
	}
	if !p.source.FileTime.IsZero() {
		p.manifest.FileTime = p.source.FileTime.UnixNano()
	}
	return w.store.replace(ctx, w.to, earlier, p.mark, p.manifest)
}

// replace writes a manifest with a version that is newer than what was found, and than
// what the nodes have recorded. It gives way to what others have stored with a later time
// since; what has the same time may as well be older, and is replaced.
func (s *Store) replace(ctx context.Context, to *quorum.Writer, earlier newest.Result, mark rollback.Mark, m *manifest.Manifest) error {
	var last manifest.Version
	if earlier.Manifest != nil {
		last = earlier.Manifest.Version
	}
	if mark.Time > last.Time {
		last = manifest.Version{Time: mark.Time}
	}
	for range settleTries {
		var err error
		if m.Version, err = last.Next(s.options.Now(), s.options.Random); err != nil {
			return err
		}
		last, err = s.write(ctx, to, m, earlier)
		if err != nil || last.Time != m.Version.Time || last.Compare(m.Version) <= 0 {
			return err
		}
		earlier = newest.Result{}
	}
	return ErrContended
}

// write writes a manifest to all locations that have nothing newer. It returns the newest
// version that one has instead, if any.
func (s *Store) write(ctx context.Context, to *quorum.Writer, m *manifest.Manifest, seen newest.Result) (kept manifest.Version, err error) {
	sealed, err := s.manifests.Seal(m, s.options.Random)
	if err != nil {
		return kept, err
	}
	return s.writeSealed(ctx, to, m, sealed, seen)
}

// writeSealed is write for a manifest that is sealed. seen is what the locations had
// just before.
func (s *Store) writeSealed(ctx context.Context, to *quorum.Writer, m *manifest.Manifest, sealed []byte, seen newest.Result) (kept manifest.Version, err error) {
	var mu sync.Mutex
	name := s.manifests.BlobName(m.Name)
	err = to.Store(ctx, func(i int, location blob.Location) error {
		there, err := s.finder.Update(ctx, location, m.Version, name, sealed, seen.Absent(i))
		mu.Lock()
		defer mu.Unlock()
		if there.Compare(kept) > 0 {
			kept = there
		}
		return err
	})
	return kept, err
}
