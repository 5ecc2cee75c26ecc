package repair

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/survey"
)

const (
	// smallBlob is the size of the largest blob of a small object's chunk, in bytes.
	smallBlob = store.SmallObject + chunk.Overhead
	// smallAtOnce bounds how many small ones are read at once, as many as each location
	// that is far away can take: 16 MiB of memory.
	smallAtOnce = 256
)

// buffers is a bounded supply of memory for blobs of at most some size.
type buffers struct {
	size int
	free chan []byte
}

// newBuffers returns a supply of n buffers, made when they are first needed.
func newBuffers(n, size int) *buffers {
	b := &buffers{size: size, free: make(chan []byte, n)}
	for range n {
		b.free <- nil
	}
	return b
}

// withBuffer runs a step with a buffer for the blob of a chunk, several at once.
func (w *work) withBuffer(ctx context.Context, group *errgroup.Group, c *survey.Chunk, step func(buffer []byte) error) error {
	from := w.large
	if c.Size() <= smallBlob {
		from = w.small
	}
	select {
	case buffer := <-from.free:
		group.Go(func() error {
			if buffer == nil {
				buffer = make([]byte, from.size)
			}
			defer func() { from.free <- buffer }()
			return step(buffer)
		})
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// verify authenticates every copy of every chunk in use.
func (w *work) verify(ctx context.Context) error {
	reachable := w.reachable()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, c := range w.survey.InUse.All() {
		for i := range w.survey.Failed {
			if c.Present.Has(i) && reachable.Has(i) {
				w.expect(int64(c.Size()))
			}
		}
	}
	var mu sync.Mutex
	locations := w.repo.Set.Locations()
	for key, c := range w.survey.InUse.All() {
		name := blob.Name{Kind: blob.KindChunk, ID: key}
		// What is found of one copy changes Present.
		mu.Lock()
		present := c.Present & reachable
		mu.Unlock()
		for i, location := range locations {
			if !present.Has(i) {
				continue
			}
			err := w.withBuffer(groupCtx, group, c, func(buffer []byte) error {
				_, state, err := w.readCopy(groupCtx, location, name, c, buffer)
				if groupCtx.Err() != nil {
					return groupCtx.Err()
				}
				mu.Lock()
				w.note(c, i, state, err)
				mu.Unlock()
				w.done(int64(c.Size()))
				return nil
			})
			if err != nil {
				break
			}
		}
		if groupCtx.Err() != nil {
			break
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// copyState says what became of reading a copy of a chunk.
type copyState int

const (
	copyGood copyState = iota
	copyMissing
	copyCorrupt
	copyUnreachable
)

// readCopy reads one location's copy of a chunk, if it can into the buffer, and
// authenticates it.
func (w *work) readCopy(ctx context.Context, location blob.Location, name blob.Name, c *survey.Chunk, buffer []byte) ([]byte, copyState, error) {
	var plaintext []byte
	_, err := blob.GetAccepted(ctx, location, name, buffer, int64(c.Size()), func(sealed []byte) (err error) {
		if len(sealed) != c.Size() {
			return chunk.ErrCorrupt
		}
		plaintext, err = w.surveyor.Chunks.Open(nil, c.Ref, sealed)
		return err
	})
	switch {
	case err == nil:
		return plaintext, copyGood, nil
	case errors.Is(err, blob.ErrNotFound):
		return nil, copyMissing, nil
	case blob.Unusable(err), errors.Is(err, chunk.ErrCorrupt):
		return nil, copyCorrupt, nil
	}
	return nil, copyUnreachable, err
}

// note enters what became of reading the copy at the location with index i.
func (w *work) note(c *survey.Chunk, i int, state copyState, err error) {
	switch state {
	case copyMissing:
		c.Present = c.Present.Without(i)
	case copyCorrupt:
		c.Present, c.Corrupt = c.Present.Without(i), c.Corrupt.With(i)
	case copyUnreachable:
		w.survey.Failed[i] = err
	}
}

// repairChunks copies every chunk in use to the reachable locations that lack
// it or have a corrupt copy.
func (w *work) repairChunks(ctx context.Context) error {
	reachable := w.reachable()
	group, groupCtx := errgroup.WithContext(ctx)
	r := &chunkRepair{work: w}
	for key, c := range w.survey.InUse.All() {
		if reachable&^c.Present == 0 || reachable&c.Present == 0 {
			continue
		}
		w.expect(int64(c.Size()))
		name := blob.Name{Kind: blob.KindChunk, ID: key}
		err := w.withBuffer(groupCtx, group, c, func(buffer []byte) error {
			defer w.done(int64(c.Size()))
			return r.copy(groupCtx, name, c, buffer)
		})
		if err != nil {
			break
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// chunkRepair guards what the goroutines that repair chunks share.
type chunkRepair struct {
	*work
	mu sync.Mutex
}

// copy brings one chunk from a location that has a good copy to those that
// have none. What reading shows to be missing or corrupt after all is counted
// and mended as well.
func (r *chunkRepair) copy(ctx context.Context, name blob.Name, c *survey.Chunk, buffer []byte) error {
	locations := r.repo.Set.Locations()
	for i, location := range locations {
		if !c.Present.Has(i) || r.failed(i) {
			continue
		}
		plaintext, state, err := r.readCopy(ctx, location, name, c, buffer)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if state != copyGood {
			r.discovered(c, i, state, err)
			continue
		}
		// A location may have read into memory of its own.
		inPlace := buffer[chunk.HeaderSize:][:copy(buffer[chunk.HeaderSize:], plaintext)]
		sealed := r.surveyor.Chunks.Seal(buffer, name, inPlace)
		for j, lacking := range locations {
			if !c.Present.Has(j) && !r.failed(j) {
				r.wrote(j, lacking.Put(ctx, name, sealed))
			}
		}
		return ctx.Err()
	}
	return nil
}

// failed reports whether a location has failed.
func (r *chunkRepair) failed(i int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.survey.Failed[i] != nil
}

// discovered enters a copy that turned out to be bad when it was read.
func (r *chunkRepair) discovered(c *survey.Chunk, i int, state copyState, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(c, i, state, err)
	row := &r.report.Locations[i]
	switch state {
	case copyMissing:
		row.Blobs--
		row.Missing++
	case copyCorrupt:
		row.Corrupt++
	case copyUnreachable:
		row.Err = err
	}
}

// wrote enters the result of writing a blob to a location.
func (r *chunkRepair) wrote(i int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work.wrote(i, err)
}

// wrote enters the result of writing a blob to a location. A location that
// refuses one is left alone from then on.
func (w *work) wrote(i int, err error) {
	if err == nil {
		w.report.Locations[i].Repaired++
		return
	}
	w.refused(i, err)
}

// refused enters that a location refused a write.
func (w *work) refused(i int, err error) {
	err = fmt.Errorf("repairing it: %w", err)
	w.survey.Failed[i] = err
	w.report.Locations[i].Err = err
}

func (w *work) expect(n int64) {
	if w.options.Progress != nil {
		w.options.Progress.Expect(n)
	}
}

func (w *work) done(n int64) {
	if w.options.Progress != nil {
		w.options.Progress.Done(n)
	}
}
