package store

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
)

// Remove deletes an object: it writes a tombstone, so that a location that
// misses it can't bring the object back. Its chunks stay until they are
// collected.
//
// A removal that fails for want of a quorum may have left tombstones. Whoever
// reads one of those locations finds the object removed, others don't, until a
// removal succeeds, the object is written again, or a repair has brought the
// tombstone to the other locations. Removing it again completes the removal, and
// returns ErrNotFound only once a quorum has the tombstone on stable storage.
func (s *Store) Remove(ctx context.Context, name string) error {
	result, err := s.newest(ctx, name)
	if err != nil {
		return err
	}
	if result.Manifest.Deleted && result.Current() >= s.set.Quorum() {
		// Whoever wrote the tombstone may have been cut off before it was synced.
		if err := s.set.PutMissing(ctx, s.manifests.BlobName(name), result.Blob); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := s.set.Flush(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	err = s.bury(ctx, name, result)
	var short *quorum.WriteError
	if errors.As(err, &short) && short.Succeeded > 0 {
		return fmt.Errorf("%w; until 'pcctl rm' succeeds, the object is there or not, depending on the locations that answer", err)
	}
	return err
}

// bury writes a tombstone over the newest version of an object, or, if that is
// one which too few locations have, that one, and makes it durable.
func (s *Store) bury(ctx context.Context, name string, result newest.Result) error {
	tombstone := result.Manifest
	var err error
	if tombstone.Deleted {
		err = s.set.Put(ctx, s.manifests.BlobName(name), result.Blob)
	} else {
		tombstone = &manifest.Manifest{Name: name, Deleted: true}
		err = s.replace(ctx, result.Manifest, tombstone)
	}
	if err == nil {
		err = s.set.Flush(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return s.settle(ctx, []*manifest.Manifest{tombstone})
}
