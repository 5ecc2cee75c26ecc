package store

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
)

// manifestsRead is how many manifests are read at once.
const manifestsRead = 16

// List returns the objects whose names start with a prefix, sorted by name. A
// location that can't be listed is warned of, as long as those that can be
// must between them have every object that was ever acknowledged; else it is
// an error. Manifests of which no location has an authentic copy are reported
// by an error that comes along with the objects that could be read.
func (s *Store) List(ctx context.Context, prefix string) ([]Object, error) {
	names, err := s.listManifests(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var objects []Object
	unreadable := 0
	var example error
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(manifestsRead)
	for _, name := range names {
		group.Go(func() error {
			s.finder.Visit(ctx, name, func(result newest.Result) {
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if err := result.Err(); err != nil {
					unreadable++
					example = err
					return
				}
				s.noteRead(result)
				if result.Live() && strings.HasPrefix(result.Manifest.Name, prefix) {
					objects = append(objects, object(result.Manifest))
				}
			})
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(objects, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	if unreadable > 0 {
		return objects, fmt.Errorf("%d of %d manifests can't be read (%w); run 'pcctl check'", unreadable, len(names), example)
	}
	return objects, nil
}

// listManifests returns the names of the manifests at all locations that can
// be listed.
func (s *Store) listManifests(ctx context.Context) ([]blob.Name, error) {
	locations := s.set.Locations()
	found := make([][]blob.Name, len(locations))
	failures := make([]error, len(locations))
	var group sync.WaitGroup
	for i, location := range locations {
		group.Go(func() {
			failures[i] = location.List(ctx, blob.KindManifest, func(info blob.Info) error {
				found[i] = append(found[i], info.Name)
				return nil
			})
		})
	}
	group.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	failed := 0
	for i, err := range failures {
		if err == nil {
			continue
		}
		failed++
		// An acknowledged object is at a quorum of locations: fewer than
		// that can't hide one.
		if failed >= s.set.Quorum() {
			return nil, fmt.Errorf("objects may be missing from the list, as %s can't be listed: %w", locations[i], err)
		}
		s.options.Warn(fmt.Sprintf("%s can't be listed: %v", locations[i], err))
	}
	names := slices.Concat(found...)
	slices.SortFunc(names, func(a, b blob.Name) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return slices.Compact(names), nil
}
