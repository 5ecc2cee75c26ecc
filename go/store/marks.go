package store

import (
	"context"

	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/rollback"
)

// readMarks reads what the nodes have recorded of objects that are about to be
// written: an object that was rolled back is mended by writing it again.
func (w *writer) readMarks(ctx context.Context, objects []*pending) error {
	if w.store.options.Guard == nil {
		return nil
	}
	ids := make([]rollback.Key, len(objects))
	for i, p := range objects {
		ids[i] = w.store.manifests.BlobName(p.source.Name).ID
	}
	marks, err := w.store.options.Guard.Get(ctx, ids...)
	for i, p := range objects {
		p.mark = marks[ids[i]]
	}
	return err
}

// recordMarks has the nodes record versions that a quorum of locations has on
// stable storage.
func (s *Store) recordMarks(ctx context.Context, written []*manifest.Manifest) error {
	if s.options.Guard == nil {
		return nil
	}
	marks := make(map[rollback.Key]rollback.Mark, len(written))
	for _, m := range written {
		marks[s.manifests.BlobName(m.Name).ID] = rollback.MarkOf(m)
	}
	return s.options.Guard.Record(ctx, marks)
}
