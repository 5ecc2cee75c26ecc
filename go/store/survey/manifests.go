package survey

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
)

// atOnce is how many manifests are read at once.
const atOnce = 16

// each runs a step for every location that has not failed, all at once, and
// records which ones fail.
func (v *Surveyor) each(ctx context.Context, failed []error, step func(index int, location blob.Location) error) error {
	var group sync.WaitGroup
	for i, location := range v.Set.Locations() {
		if failed[i] != nil {
			continue
		}
		group.Go(func() { failed[i] = step(i, location) })
	}
	group.Wait()
	return ctx.Err()
}

// eachManifest reads every manifest that any location lists and calls visit
// for each, from one goroutine at a time. Locations that can't be listed are
// recorded as failed.
func (v *Surveyor) eachManifest(ctx context.Context, failed []error, visit func(blob.Name, newest.Result)) error {
	listed := make([][]blob.Name, len(failed))
	err := v.each(ctx, failed, func(i int, location blob.Location) error {
		return location.List(ctx, blob.KindManifest, func(info blob.Info) error {
			listed[i] = append(listed[i], info.Name)
			return nil
		})
	})
	if err != nil {
		return err
	}
	names := slices.Concat(listed...)
	slices.SortFunc(names, func(a, b blob.Name) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	names = slices.Compact(names)
	v.expect(int64(len(names)))
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, name := range names {
		group.Go(func() error {
			v.Finder.Visit(ctx, name, func(result newest.Result) {
				if ctx.Err() == nil {
					mu.Lock()
					defer mu.Unlock()
					visit(name, result)
					v.done(1)
				}
			})
			return ctx.Err()
		})
	}
	return group.Wait()
}

// Users returns the names of the objects that need any of the given chunks,
// sorted. It reads the manifests again.
func (v *Surveyor) Users(ctx context.Context, s *Survey, chunks map[Key]bool) ([]string, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	var users []string
	err := v.eachManifest(ctx, slices.Clone(s.Failed), func(_ blob.Name, result newest.Result) {
		if !result.Live() {
			return
		}
		for _, ref := range result.Manifest.Chunks {
			if chunks[v.Chunks.Name(ref).ID] {
				users = append(users, result.Manifest.Name)
				return
			}
		}
	})
	slices.Sort(users)
	return users, err
}
