package store

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/workers"
)

// ErrCollected means that garbage collection, run with a clock that is far off
// or a grace period shorter than this write took, has deleted chunks that the
// object needs, or was about to. The object's earlier version was put back.
var ErrCollected = errors.New("garbage collection interfered with the write; try again")

// checkCollected makes sure that no collection has deleted a chunk that the
// objects use, or is about to. Package grace explains why that is enough. If one
// has, the objects' earlier versions are put back.
func (w *writer) checkCollected(ctx context.Context, objects []*pending) error {
	listed, err := w.store.keeper.ListedAtQuorum(ctx)
	if err != nil {
		return err
	}
	victim := w.condemned(listed, objects)
	if victim == nil && !listed.Same(w.listed) {
		victim, err = w.lacking(ctx, objects)
	}
	if victim == nil || err != nil {
		return err
	}
	if err := w.store.eachObject(ctx, objects, w.putBack); err != nil {
		return fmt.Errorf("%w; its earlier version could not be put back: %w", ErrCollected, err)
	}
	return errors.Join(fmt.Errorf("%s: %w", victim.source.Name, ErrCollected), w.to.Flush(ctx))
}

// condemned returns one of the objects that uses a condemned chunk, or nil.
func (w *writer) condemned(listed *grace.Listing, objects []*pending) *pending {
	if len(listed.Chunks) == 0 {
		return nil
	}
	for _, p := range objects {
		for _, ref := range p.refs {
			if listed.Chunks[w.store.chunks.Name(ref).ID] {
				return p
			}
		}
	}
	return nil
}

// lacking returns one of the objects that uses a chunk which so many locations
// lack that it can't be at a quorum any more, or nil.
func (w *writer) lacking(ctx context.Context, objects []*pending) (*pending, error) {
	type use struct {
		object *pending
		size   int64
	}
	uses := map[chunk.Ref]use{}
	for _, p := range objects {
		for i, ref := range p.refs {
			uses[ref] = use{p, int64(p.manifest.ChunkSize(i) + chunk.Overhead)}
		}
	}
	var victim atomic.Pointer[pending]
	most := len(w.store.set.Locations()) - w.store.set.Quorum()
	err := workers.Each(ctx, w.store.atOnce(), slices.Collect(maps.Keys(uses)), func(ctx context.Context, ref chunk.Ref) error {
		if w.store.set.Lacking(ctx, w.store.chunks.Name(ref), uses[ref].size) > most {
			victim.Store(uses[ref].object)
		}
		return ctx.Err()
	})
	return victim.Load(), err
}

// putBack replaces an object's manifest by the one that was there before, unless
// somebody else wrote a newer one since.
func (w *writer) putBack(ctx context.Context, p *pending) error {
	now := w.store.find(ctx, p.source.Name)
	if now.Manifest != nil && now.Manifest.Version.Compare(p.manifest.Version) > 0 {
		return nil
	}
	restored := &manifest.Manifest{Name: p.source.Name, Deleted: true}
	if p.earlier != nil {
		*restored = *p.earlier
	}
	return w.store.replace(ctx, w.to, newest.Result{Manifest: p.manifest}, p.mark, restored)
}
