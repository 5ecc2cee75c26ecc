package quorum

import (
	"context"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/ledger"
)

// Put writes the blob to every location at once and waits for all of them. It
// returns a *WriteError when fewer than the quorum took it, or ctx's error when
// that is why. The blob outlasts a power cut once a later Flush has returned nil.
func (s *Set) Put(ctx context.Context, name blob.Name, data []byte) error {
	return s.put(ctx, func(_ int, location blob.Location) error {
		return location.Put(ctx, name, data)
	})
}

// PutMissing is Put for a blob whose name determines its content: it leaves a
// location alone that has a blob of that name and size. It doesn't look at that
// blob's content.
func (s *Set) PutMissing(ctx context.Context, name blob.Name, data []byte) error {
	return s.put(ctx, func(_ int, location blob.Location) error {
		return blob.PutMissing(ctx, location, name, data)
	})
}

func (s *Set) put(ctx context.Context, step func(int, blob.Location) error) error {
	errs := s.each(func(i int, location blob.Location) error {
		return s.writing.Try(ctx, i, func() error { return step(i, location) })
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteMissed(ctx, errs)
	took := ledger.Succeeded(errs)
	if err := s.enough(ctx, took.Count(), errs); err != nil {
		return err
	}
	s.writes.Add(took)
	return nil
}

// Flush makes everything that Put and PutMissing had acknowledged before the
// call outlast a power cut, at all locations at once. It returns nil only when
// every one of those blobs is durable at a quorum of locations: a location
// counts for a blob when it took the blob and then flushed. Otherwise it returns
// an error like Put's, whose count is that of the blob with the fewest.
func (s *Set) Flush(ctx context.Context) error {
	s.mu.Lock()
	covered := s.writes.Last()
	s.mu.Unlock()
	errs := s.each(func(_ int, location blob.Location) error { return location.Flush(ctx) })

	s.mu.Lock()
	defer s.mu.Unlock()
	s.noteMissed(ctx, errs)
	durable := s.writes.Durable(ledger.Succeeded(errs))
	for i, err := range s.missed {
		// A flush can fall short through a location that flushed but had missed
		// the write: that is part of the reason.
		if errs[i] == nil {
			errs[i] = err
		}
	}
	if err := s.enough(ctx, durable, errs); err != nil {
		return err
	}
	s.writes.Settle(covered)
	return nil
}

// noteMissed remembers which locations missed a write, but not when the caller
// gave up: that is no fault of theirs.
func (s *Set) noteMissed(ctx context.Context, errs []error) {
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
