package store

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
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
	to := s.set.NewWriter()
	removals, err := s.tombstones.Removals(ctx)
	if err != nil {
		return err
	}
	mark, recorded, err := s.recorded(ctx, name)
	if err != nil {
		return err
	}
	result, err := s.newest(ctx, name)
	// An object that all locations hide, or show in an old version, can be removed.
	rolledBack := recorded && rollback.Compare(name, mark, result.Manifest) != nil
	if err != nil && !(rolledBack && errors.Is(err, ErrNotFound)) {
		return err
	}
	if !rolledBack && result.Manifest.Deleted && s.leaving(removals, result) {
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if !rolledBack && result.Manifest.Deleted && result.Current() >= s.set.Quorum() {
		// Whoever wrote the tombstone may have been cut off before it was synced.
		if _, err := s.writeSealed(ctx, to, result.Manifest, result.Blob, result); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := to.Flush(ctx); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	tombstone := result.Manifest
	if rolledBack || !tombstone.Deleted {
		tombstone = &manifest.Manifest{Name: name, Deleted: true}
		err = s.replace(ctx, to, result, mark, tombstone)
	} else {
		// One which too few locations have.
		_, err = s.writeSealed(ctx, to, result.Manifest, result.Blob, result)
	}
	if err == nil {
		err = s.bury(ctx, to, removals, tombstone)
	} else {
		err = fmt.Errorf("%s: %w", name, err)
	}
	var short *quorum.WriteError
	if errors.As(err, &short) && short.Succeeded > 0 {
		return fmt.Errorf("%w; until 'pcctl rm' succeeds, the object is there or not, depending on the locations that answer", err)
	}
	return err
}

// bury makes sure that a tombstone that was written stays.
func (s *Store) bury(ctx context.Context, to *quorum.Writer, removals *tombstones.Removals, tombstone *manifest.Manifest) error {
	if err := to.Flush(ctx); err != nil {
		return fmt.Errorf("%s: %w", tombstone.Name, err)
	}
	written := []*manifest.Manifest{tombstone}
	if err := s.settle(ctx, to, written); err != nil {
		return err
	}
	if err := s.stay(ctx, to, removals, written); err != nil {
		return err
	}
	if IsSystem(tombstone.Name) {
		s.noteRemoved(s.manifests.BlobName(tombstone.Name))
	}
	return s.recordMarks(ctx, written)
}

// leaving reports whether a tombstone is one that is being deleted, because every
// location had it: that some have lost it already doesn't make it less final.
func (s *Store) leaving(removals *tombstones.Removals, result newest.Result) bool {
	m := result.Manifest
	entry, listed := removals.Agreed[s.manifests.BlobName(m.Name).ID]
	return listed && entry.Version == m.Version
}
