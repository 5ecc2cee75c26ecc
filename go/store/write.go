package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/lost"
)

// A batch is how much is stored before manifests are written and everything is
// synced: syncing once for many small objects costs little more than once for
// one.
const (
	batchObjects = 512
	batchBytes   = 256 << 20
)

// UnknownSize is the Size of a source that tells it only by ending.
const UnknownSize = -1

// Source is something to be stored as an object.
type Source struct {
	// Name is the object's name.
	Name string
	// Open returns the content. It is called once, by any goroutine, and its
	// result closed.
	Open func() (io.ReadCloser, error)
	// Size is the expected size in bytes, or UnknownSize for a stream. The
	// content may turn out longer or shorter.
	Size int64
	// FileTime and FileMode describe the file that the content comes from;
	// zero when there is none.
	FileTime time.Time
	FileMode fs.FileMode
}

// SourceError means that one source could not be stored: its content could not be
// read, or its name isn't free (ErrRemoving). Nothing was stored under its name; the
// other sources are not touched by it.
type SourceError struct {
	// Name is the object's name.
	Name string
	Err  error
}

func (e *SourceError) Error() string { return fmt.Sprintf("%s: %v", e.Name, e.Err) }

// Unwrap returns the reason.
func (e *SourceError) Unwrap() error { return e.Err }

// Put stores one object. Once it returns, a quorum of locations has the object
// on stable storage. Progress is counted in bytes and may be nil.
func (s *Store) Put(ctx context.Context, source Source, progress Progress) (Object, error) {
	var stored Object
	one := func(yield func(Source) bool) { yield(source) }
	err := s.PutAll(ctx, one, progress, func(objects []Object) { stored = objects[0] })
	return stored, err
}

// PutAll stores many objects. It calls stored, from one goroutine at a time
// and in the order of the sources, with those that a quorum of locations newly has
// on stable storage. A source that can't be stored is left out and comes
// back, joined with the others, as a *SourceError; any other fault ends the
// work. Progress is counted in bytes and may be nil.
func (s *Store) PutAll(ctx context.Context, sources iter.Seq[Source], progress Progress, stored func([]Object)) error {
	if progress == nil {
		progress = silent{}
	}
	listed, err := s.keeper.Listed(ctx)
	if err != nil {
		return err
	}
	lost, err := s.lost.Listed(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	w := &writer{store: s, to: s.set.NewWriter(), buffers: s.buffers.share(), listed: listed, lost: lost, progress: progress, stored: stored,
		jobs: make(chan job), batches: make(chan *batch)}
	group.Go(func() error { return w.handOut(ctx, sources) })
	// Those beyond the number of buffers are for small objects.
	for range max(s.options.Workers, s.set.Concurrency()) {
		group.Go(func() error { return w.work(ctx) })
	}
	group.Go(func() error { return w.commitBatches(ctx) })
	if err := group.Wait(); err != nil {
		return err
	}
	return errors.Join(w.failed...)
}

// writer is one PutAll at work: a goroutine hands out the sources, several read,
// seal and store them, and one commits batches of objects whose chunks are stored.
type writer struct {
	store *Store
	// to is what all of it is written to the locations by.
	to      *quorum.Writer
	buffers *share
	// listed are the chunks not to count on, as of before the work began.
	listed   *grace.Listing
	lost     lost.Blobs
	progress Progress
	stored   func([]Object)
	jobs     chan job
	batches  chan *batch
	// failed belongs to the goroutine that commits.
	failed []error
}

// job is a part of the work that one goroutine does. One that was handed out is
// done, if only by failing at once, even when the context has ended.
type job func(ctx context.Context) error

// handOut gathers batches of sources and hands the sources out as jobs.
func (w *writer) handOut(ctx context.Context, sources iter.Seq[Source]) error {
	defer close(w.batches)
	defer close(w.jobs)
	current := newBatch()
	for source := range sources {
		// Of two sources with one name the later must win, so they don't
		// share a batch.
		if current.full() || current.names[source.Name] {
			if err := w.handOver(ctx, current); err != nil {
				return err
			}
			current = newBatch()
		}
		p := &pending{source: source, batch: current}
		current.objects = append(current.objects, p)
		current.names[source.Name] = true
		current.bytes += max(source.Size, 0)
		if err := w.handOutSource(ctx, p); err != nil {
			return err
		}
	}
	return w.handOver(ctx, current)
}

// handOver gives a batch to the goroutine that commits.
func (w *writer) handOver(ctx context.Context, b *batch) error {
	b.add(-1)
	select {
	case w.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give hands out a job, which settles what it was counted for in its batch.
func (w *writer) give(ctx context.Context, j job) error {
	select {
	case w.jobs <- j:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work does jobs until there are no more.
func (w *writer) work(ctx context.Context) error {
	for {
		select {
		case j, ok := <-w.jobs:
			if !ok {
				return nil
			}
			if err := j(ctx); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// storeChunk stores the n bytes of plaintext in the buffer, which are the chunk ref, as
// an object's chunk, under its first generation that the collector has no eye on, at
// every location that doesn't have it yet.
func (w *writer) storeChunk(ctx context.Context, p *pending, index int, buffer *buffer, n int, ref chunk.Ref) error {
	sealer := w.store.chunks
	name := sealer.Name(ref)
	for {
		if _, listed := w.listed.Chunks[name.ID]; !listed {
			break
		}
		ref.Generation++
		name = sealer.Name(ref)
	}
	sealed := sealer.Seal(buffer.sealed, name, buffer.plaintext[:n])
	if err := w.putChunk(ctx, name, sealed); err != nil {
		return fmt.Errorf("%s: %w", p.source.Name, err)
	}
	p.chunkStored(index, ref)
	w.progress.Done(int64(n))
	return nil
}

// putChunk writes a chunk to every location that doesn't have it yet, or to all
// if what they have was found to be corrupt.
func (w *writer) putChunk(ctx context.Context, name blob.Name, sealed []byte) error {
	if w.lost[name.ID] {
		return w.to.Put(ctx, name, sealed)
	}
	return w.to.PutMissing(ctx, name, sealed)
}
