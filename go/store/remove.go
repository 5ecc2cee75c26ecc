package store

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/tombstones"
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
	removals, err := s.tombstones.Removals(ctx)
	if err != nil {
		return err
	}
	result, err := s.newest(ctx, name)
	if err != nil {
		return err
	}
	if result.Manifest.Deleted && s.leaving(removals, result) {
		return fmt.Errorf("%s: %w", name, ErrNotFound)
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
	err = s.bury(ctx, name, removals, result)
	var short *quorum.WriteError
	if errors.As(err, &short) && short.Succeeded > 0 {
		return fmt.Errorf("%w; until 'pcctl rm' succeeds, the object is there or not, depending on the locations that answer", err)
	}
	return err
}

// bury writes a tombstone over the newest version of an object, or, if that is
// one which too few locations have, that one, and makes it durable.
func (s *Store) bury(ctx context.Context, name string, removals *tombstones.Removals, result newest.Result) error {
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
	written := []*manifest.Manifest{tombstone}
	if err := s.settle(ctx, written); err != nil {
		return err
	}
	return s.stay(ctx, removals, written)
}

// leaving reports whether a tombstone is one that is being deleted, because every
// location had it: that some have lost it already doesn't make it less final.
func (s *Store) leaving(removals *tombstones.Removals, result newest.Result) bool {
	m := result.Manifest
	entry, listed := removals.Agreed[s.manifests.BlobName(m.Name).ID]
	return listed && entry.Version == m.Version
}
