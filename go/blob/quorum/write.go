package quorum

import (
	"context"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/ledger"
)

// Writer is for those who write blobs to a set for one purpose and then need them to be
// durable: a put, a removal. It answers for what it wrote itself, so that a set can be
// kept for as long as a gateway runs: of a purpose that failed, for want of a flush at
// locations that went down after they took its blobs, nothing is left to make the
// flushes of others fail. Its methods may be called from several goroutines at once.
type Writer struct {
	set *Set

	mu sync.Mutex
	// missed holds, by location, the first error of a write of the Writer's that it
	// missed.
	missed []error
	writes ledger.Ledger
}

// NewWriter returns a Writer that has written nothing.
func (s *Set) NewWriter() *Writer { return &Writer{set: s, missed: make([]error, len(s.locations))} }

// Put writes the blob to every location at once and waits for all of them. It
// returns a *WriteError when fewer than the quorum took it, or ctx's error when
// that is why. The blob outlasts a power cut once a later Flush of the same Writer has
// returned nil.
func (w *Writer) Put(ctx context.Context, name blob.Name, data []byte) error {
	return w.Store(ctx, func(_ int, location blob.Location) error {
		return location.Put(ctx, name, data)
	})
}

// PutMissing is Put for a blob whose name determines its content: it leaves a
// location alone that has a blob of that name and size. It doesn't look at that
// blob's content.
func (w *Writer) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	return w.Store(ctx, func(_ int, location blob.Location) error {
		return blob.PutMissing(ctx, location, name, data)
	})
}

// Store is Put with a step that stores the blob at a location, given its index in the
// set, or makes sure that it need not.
func (w *Writer) Store(ctx context.Context, step func(i int, location blob.Location) error) error {
	errs := w.set.each(func(i int, location blob.Location) error {
		return w.set.writing.Try(ctx, i, func() error { return step(i, location) })
	})
	w.set.noteMissed(ctx, errs)
	took := ledger.Succeeded(errs)
	if err := w.set.enough(ctx, took.Count(), errs); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, err := range errs {
		if err != nil && w.missed[i] == nil {
			w.missed[i] = err
		}
	}
	w.writes.Add(took)
	return nil
}

// Flush makes everything that the Writer's Put and PutMissing had acknowledged before
// the call outlast a power cut, at all locations at once. It returns nil only when
// every one of those blobs is durable at a quorum of locations: a location
// counts for a blob when it took the blob and then flushed. Otherwise it returns
// an error like Put's, whose count is that of the blob with the fewest; a later Flush
// may then succeed, and doesn't before those blobs are durable.
//
// That other Writers' blobs aren't durable doesn't make it fail: their own Flush says
// so. A blob which PutMissing found at a location is the Writer's own, whoever wrote
// it: the location's Flush covers it.
func (w *Writer) Flush(ctx context.Context) error {
	w.mu.Lock()
	covered := w.writes.Last()
	w.mu.Unlock()
	errs := w.set.each(func(_ int, location blob.Location) error { return location.Flush(ctx) })
	w.set.noteMissed(ctx, errs)

	w.mu.Lock()
	defer w.mu.Unlock()
	durable := w.writes.Durable(ledger.Succeeded(errs))
	for i, err := range w.missed {
		// A flush can fall short through a location that flushed but had missed
		// the write: that is part of the reason.
		if errs[i] == nil {
			errs[i] = err
		}
	}
	if err := w.set.enough(ctx, durable, errs); err != nil {
		return err
	}
	w.writes.Settle(covered)
	return nil
}

// noteMissed remembers which locations missed a write, but not when the caller
// gave up: that is no fault of theirs.
func (s *Set) noteMissed(ctx context.Context, errs []error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, err := range errs {
		if err != nil && s.missed[i] == nil && ctx.Err() == nil {
			s.missed[i] = err
		}
	}
}

// enough returns an error made of errs if count is below the quorum.
func (s *Set) enough(ctx context.Context, count int, errs []error) error {
	if count >= s.quorum {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return &WriteError{Succeeded: count, Total: len(s.locations), Need: s.quorum, Failures: blob.FailuresOf(s.locations, errs)}
}
