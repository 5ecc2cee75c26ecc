package store

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/tombstones"
)

// ErrRemoving means that a collection of tombstones is deleting the manifest of an
// object that had the same name, or was cut short while it did. What was written
// may be deleted with it, and was not acknowledged.
var ErrRemoving = errors.New("'pcctl gc --tombstones' is deleting what is left of a removed object of this name; " +
	"try again when it has ended, and if it was cut short, run it again an hour later")

// stay makes sure that no collection of tombstones deletes what was written, or
// already has, after it was settled. before is what the records of removals said
// before it was written. Package tombstones explains why that is enough.
func (s *Store) stay(ctx context.Context, to *quorum.Writer, before *tombstones.Removals, written []*manifest.Manifest) error {
	now, err := s.tombstones.RemovalsAtQuorum(ctx)
	for range settleTries {
		if err != nil {
			return err
		}
		for _, m := range written {
			if s.removing(now, m.Name) {
				return fmt.Errorf("%s: %w", m.Name, ErrRemoving)
			}
		}
		if now.Same(before) {
			return nil
		}
		// It may have been listed in between, and deleted.
		if err := s.settle(ctx, to, written); err != nil {
			return err
		}
		before = now
		now, err = s.tombstones.RemovalsAtQuorum(ctx)
	}
	return fmt.Errorf("%s: %w", written[0].Name, ErrContended)
}

// removing reports whether the tombstone of an object is being deleted.
func (s *Store) removing(removals *tombstones.Removals, name string) bool {
	if len(removals.Listed) == 0 {
		return false
	}
	_, listed := removals.Listed[s.manifests.BlobName(name).ID]
	return listed
}

// leaveOut leaves those objects of a batch out whose tombstones are being deleted.
func (w *writer) leaveOut(removals *tombstones.Removals, objects []*pending) {
	for _, p := range objects {
		if w.store.removing(removals, p.source.Name) {
			p.fail(ErrRemoving)
		}
	}
}
