package gc

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/survey"
	"powercloud.unidatum.com/go/store/workers"
)

// deletionsAtOnce is how many chunks are deleted at once at a location that isn't
// far away.
const deletionsAtOnce = 4

// delete deletes what is due everywhere. A location that fails doesn't keep the
// others from being freed.
//
// What was deleted stays condemned in the record for another grace period. A
// writer that counted on it may not have looked at the record again yet; and
// another collection, run at the same time, may be about to delete it too, and
// must not meet a copy that was stored under the same name since.
func (c *collection) delete(ctx context.Context, p *plan) error {
	failures := c.deleteChunks(ctx, p.due)
	for key, where := range p.due {
		if where&failures.where == 0 {
			p.record.Chunks[key] = grace.Entry{Since: c.options.Now(), Condemned: true}
		}
	}
	all := failures.errs
	for key, l := range p.dueLeftovers {
		if err := l.location.RemoveTemporary(ctx, l.file.Name); err != nil {
			all = append(all, fmt.Errorf("%s: deleting a temporary file: %w", l.where, err))
			continue
		}
		delete(p.record.Leftovers, key)
	}
	return errors.Join(append(all, flush(ctx, c.repo.Set))...)
}

// flush makes deletions outlast a power cut. A location that fails doesn't keep it
// from the others.
func flush(ctx context.Context, set *quorum.Set) error {
	var all []error
	for _, location := range set.Locations() {
		if err := location.Flush(ctx); err != nil {
			all = append(all, fmt.Errorf("%s: %w", location, err))
		}
	}
	return errors.Join(all...)
}

// failed are the locations that refused a deletion, and why.
type failed struct {
	where survey.Locations
	errs  []error
}

// deleteChunks deletes chunks at all locations at once. The first failure ends the
// work at a location.
func (c *collection) deleteChunks(ctx context.Context, due map[survey.Key]survey.Locations) failed {
	if c.options.Progress != nil {
		copies := 0
		for _, where := range due {
			copies += where.Count()
		}
		c.options.Progress.Expect(int64(copies))
	}
	locations := c.repo.Set.Locations()
	errs := make([]error, len(locations))
	var wait sync.WaitGroup
	for i, location := range locations {
		wait.Go(func() { errs[i] = c.deleteAt(ctx, i, location, due) })
	}
	wait.Wait()
	var f failed
	for i, err := range errs {
		if err != nil {
			f.where = f.where.With(i)
			f.errs = append(f.errs, fmt.Errorf("%s: deleting a chunk: %w", locations[i], err))
		}
	}
	return f
}

// deleteAt deletes those chunks that the location with index i has.
func (c *collection) deleteAt(ctx context.Context, i int, location blob.Location, due map[survey.Key]survey.Locations) error {
	atOnce := deletionsAtOnce
	if concurrent, ok := location.(blob.Concurrent); ok {
		atOnce = max(atOnce, concurrent.Concurrency())
	}
	var names []blob.Name
	for key, where := range due {
		if where.Has(i) {
			names = append(names, blob.Name{Kind: blob.KindChunk, ID: key})
		}
	}
	return workers.Each(ctx, atOnce, names, func(ctx context.Context, name blob.Name) error {
		err := location.Delete(ctx, name)
		if err == nil && c.options.Progress != nil {
			c.options.Progress.Done(1)
		}
		return err
	})
}
