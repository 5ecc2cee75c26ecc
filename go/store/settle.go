package store

import (
	"context"
	"fmt"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/workers"
)

// ErrContended means that others wrote an object at the same time, again and
// again, so that no version of it stayed at a quorum of locations.
var ErrContended = blob.ErrContended

// settleTries is how often versions are looked at and written again.
const settleTries = 5

// settle makes sure that what was written, or something newer, is at a quorum of
// locations, after it was flushed.
//
// A location that can't tell whether a blob was replaced since it was read replaces what
// it has by what it is sent, also by something older. So of two who write one name at
// once, the one whose write arrives last at some locations may leave the newer version at
// fewer than a quorum. Whoever wrote looks afterwards, and so the last to arrive sees what
// it has done, and writes the newest version again.
func (s *Store) settle(ctx context.Context, to *quorum.Writer, written []*manifest.Manifest) error {
	for range settleTries {
		again, err := s.reassert(ctx, to, written)
		if err != nil || len(again) == 0 {
			return err
		}
		if err := to.Flush(ctx); err != nil {
			return err
		}
		written = again
	}
	return fmt.Errorf("%s: %w", written[0].Name, ErrContended)
}

// reassert writes the newest versions that have fewer copies than a quorum to all
// locations, and returns the manifests that this happened to.
func (s *Store) reassert(ctx context.Context, to *quorum.Writer, written []*manifest.Manifest) (again []*manifest.Manifest, err error) {
	var mu sync.Mutex
	err = workers.Each(ctx, s.atOnce(), written, func(ctx context.Context, m *manifest.Manifest) error {
		var err error
		s.finder.Visit(ctx, s.manifests.BlobName(m.Name), func(found newest.Result) {
			if err = ctx.Err(); err != nil || s.settled(m, found) {
				return
			}
			mu.Lock()
			again = append(again, m)
			mu.Unlock()
			if older(found.Manifest, m) {
				_, err = s.write(ctx, to, m, found)
			} else {
				_, err = s.writeSealed(ctx, to, found.Manifest, found.Blob, found)
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
		return nil
	})
	return again, err
}

// settled reports whether a quorum of locations has a version that was written,
// or a newer one. Locations that don't answer can't be told that they lack it.
func (s *Store) settled(written *manifest.Manifest, found newest.Result) bool {
	answered := found.Current() + found.Behind()
	if older(found.Manifest, written) {
		return answered == 0
	}
	return found.Behind() == 0 || found.Current() >= s.set.Quorum()
}

// older reports whether a manifest that was found, or nil for none, is older than
// another.
func older(found, than *manifest.Manifest) bool {
	return found == nil || found.Version.Compare(than.Version) < 0
}
