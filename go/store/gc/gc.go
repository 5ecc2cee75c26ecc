// Package gc deletes the chunks that no object uses any more, and what
// interrupted writes left behind.
//
// It takes two runs: one records what is unreferenced in the grace record, and
// a later one, when the grace period is over, deletes what still is. Package
// grace explains how that keeps clear of writers at work.
package gc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store"
	"powercloud.unidatum.com/go/store/grace"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/survey"
)

// Options say how a collection is run.
type Options struct {
	// Grace is how long a chunk must stay unreferenced before it is
	// deleted.
	Grace time.Duration
	// DryRun has nothing recorded and nothing deleted, and nothing mended by being
	// read.
	DryRun bool
	// Now tells the time; time.Now when nil.
	Now func() time.Time
	// Random is a source of random bytes; crypto/rand.Reader when nil.
	Random io.Reader
	// Progress counts manifests that are read and chunks that are deleted;
	// it may be nil.
	Progress store.Progress
}

// Result is what a collection found and did.
type Result struct {
	// InUse counts the chunks that objects need.
	InUse int
	// Deleted counts the chunks that were deleted, or would be in a dry
	// run.
	Deleted int
	// Waiting counts the unreferenced chunks whose grace period isn't over.
	Waiting int
	// Leftovers counts the temporary files that were deleted.
	Leftovers int
}

// Run collects once. It refuses to unless every location can be read whole: a
// manifest that can't be read might use chunks that look unused elsewhere.
func Run(ctx context.Context, repo *repository.Repository, options Options) (Result, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	c, err := newCollection(repo, options)
	if err != nil {
		return Result{}, err
	}
	if options.DryRun {
		ctx = blob.ReadOnly(ctx)
	}
	return c.run(ctx)
}

// collection is a run at work.
type collection struct {
	repo     *repository.Repository
	options  Options
	keeper   *grace.Keeper
	surveyor *survey.Surveyor
	// most is how many chunks can be condemned at a time.
	most int
	// seen are the chunks whose marks this run has set or decided about.
	seen map[survey.Key]bool
}

func newCollection(repo *repository.Repository, options Options) (*collection, error) {
	surveyor, err := survey.New(repo.Set, repo.Root)
	if err != nil {
		return nil, err
	}
	surveyor.Catalog = repo.Catalog
	keeper, err := grace.NewKeeper(repo.Set, repo.Root)
	if err != nil {
		return nil, err
	}
	if p := options.Progress; p != nil {
		surveyor.Expect, surveyor.Done = p.Expect, p.Done
	}
	return &collection{repo: repo, options: options, keeper: keeper, surveyor: surveyor, most: grace.MaxEntries, seen: map[survey.Key]bool{}}, nil
}

func (c *collection) run(ctx context.Context) (Result, error) {
	var err error
	if c.surveyor.Marks, err = c.repo.Guard.All(ctx); err != nil {
		return Result{}, err
	}
	found, err := c.take(ctx)
	if err != nil {
		return Result{}, err
	}
	leftovers, err := c.listLeftovers(ctx)
	if err != nil {
		return Result{}, err
	}
	recorded, err := c.keeper.Agreed(ctx)
	if err != nil {
		return Result{}, err
	}
	p := c.plan(found, leftovers, recorded)
	result := Result{InUse: found.InUse.Len(), Deleted: len(p.due), Waiting: found.Unreferenced.Len() - len(p.due)}
	if c.options.DryRun {
		return result, nil
	}
	if len(p.due) > 0 {
		if err := c.condemn(ctx, p); err != nil {
			return Result{}, err
		}
		result.Deleted = len(p.due)
	}
	failure := c.delete(ctx, p)
	result.Leftovers = len(p.dueLeftovers)
	// Recorded even when the run was interrupted: what was deleted, and what
	// wasn't.
	if err := c.record(context.WithoutCancel(ctx), p.record, recorded); err != nil {
		failure = errors.Join(failure, err)
	}
	return result, failure
}

// take surveys the repository and refuses what makes a collection unsafe.
func (c *collection) take(ctx context.Context) (*survey.Survey, error) {
	found, err := c.surveyor.Take(ctx)
	if err != nil {
		return nil, err
	}
	locations := c.repo.Locations
	for i, location := range c.repo.Set.Locations() {
		// A deletion must reach every part of a set.
		if found.Failed[i] == nil {
			found.Failed[i] = blob.ProbeAll(ctx, location)
		}
	}
	for i, err := range found.Failed {
		if err != nil {
			return nil, fmt.Errorf("store: gc needs every backend, and %s is unreachable: %w", locations[i], err)
		}
	}
	for i, counts := range found.Manifests {
		if counts.Corrupt > 0 {
			return nil, fmt.Errorf("store: gc needs every manifest, and %s has %d corrupt; run 'pcctl repair' first",
				locations[i], counts.Corrupt)
		}
		if counts.Newer > 0 {
			return nil, fmt.Errorf("store: gc needs every manifest, and %s has %d that were written by a newer pcctl; use that one",
				locations[i], counts.Newer)
		}
	}
	// A version that nobody shows needs chunks that look unused.
	if err := c.surveyor.Marks.Err(); err != nil {
		return nil, err
	}
	return found, c.keepOlder(ctx, found)
}

// leftover is a temporary file of an interrupted write.
type leftover struct {
	location blob.Temporaries
	where    string
	file     blob.Temporary
}

// listLeftovers lists the temporary files at every location.
func (c *collection) listLeftovers(ctx context.Context) (map[grace.Key]leftover, error) {
	found := map[grace.Key]leftover{}
	for _, location := range c.repo.Set.Locations() {
		temporaries, ok := location.(blob.Temporaries)
		if !ok {
			continue
		}
		err := temporaries.ListTemporary(ctx, func(file blob.Temporary) error {
			key := grace.LeftoverKey(location.String(), file)
			found[key] = leftover{temporaries, location.String(), file}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("store: gc needs every backend, and %s is unreachable: %w", location, err)
		}
	}
	return found, nil
}

// plan is what a run is going to do.
type plan struct {
	// record is the grace record as it will stand.
	record *grace.Record
	// due are the chunks to delete, and who has them.
	due map[survey.Key]survey.Locations
	// dueLeftovers are the temporary files to delete.
	dueLeftovers map[grace.Key]leftover
}

// plan decides what is due.
func (c *collection) plan(found *survey.Survey, leftovers map[grace.Key]leftover, recorded *grace.Record) *plan {
	now := c.options.Now()
	notAfter(recorded.Chunks, now)
	notAfter(recorded.Leftovers, now)
	p := &plan{record: grace.NewRecord(), due: map[survey.Key]survey.Locations{}, dueLeftovers: map[grace.Key]leftover{}}
	for key, where := range found.Unreferenced.All() {
		entry, known := recorded.Chunks[key]
		if !known {
			entry.Since = now
		}
		// One that is condemned stays so: another collection may be about to
		// delete it.
		if known && now.Sub(entry.Since) >= c.options.Grace {
			p.due[key] = where
		}
		p.record.Chunks[key] = entry
	}
	for key, entry := range recorded.Chunks {
		c.seen[key] = entry.Condemned
		if found.Unreferenced.Find(key) == 0 && entry.Condemned && now.Sub(entry.Since) < c.options.Grace {
			p.record.Chunks[key] = entry // See delete.
		}
	}
	c.spareNewest(p)
	for key, file := range leftovers {
		entry, known := recorded.Leftovers[key]
		if !known {
			entry.Since = now
		}
		if known && now.Sub(entry.Since) >= c.options.Grace {
			p.dueLeftovers[key] = file
		}
		p.record.Leftovers[key] = entry
	}
	return p
}

// notAfter dates entries that are dated later than now back to now. The clock of
// an earlier run was ahead; but that run is over, so they were recorded by now.
func notAfter(entries map[grace.Key]grace.Entry, now time.Time) {
	for key, entry := range entries {
		if entry.Since.After(now) {
			entry.Since = now
			entries[key] = entry
		}
	}
}

// spareNewest leaves chunks that are due for another run when the record can't
// hold them all as condemned, those that were due last.
func (c *collection) spareNewest(p *plan) {
	condemned := 0
	for key, entry := range p.record.Chunks {
		if entry.Condemned && p.due[key] == 0 {
			condemned++
		}
	}
	room := max(c.most-condemned, 0)
	if len(p.due) <= room {
		return
	}
	due := slices.SortedFunc(maps.Keys(p.due), func(x, y survey.Key) int {
		return p.record.Chunks[x].Since.Compare(p.record.Chunks[y].Since)
	})
	for _, key := range due[room:] {
		delete(p.due, key)
	}
}

// condemn records which chunks are about to be deleted, then looks at the
// manifests once more and spares those that came into use.
func (c *collection) condemn(ctx context.Context, p *plan) error {
	condemned := grace.NewRecord()
	condemned.Leftovers = p.record.Leftovers
	for key, entry := range p.record.Chunks {
		if p.due[key] != 0 {
			// Should this run be cut short, the next one must not
			// forget what was deleted.
			entry = grace.Entry{Since: c.options.Now(), Condemned: true}
			c.seen[key] = true
		}
		condemned.Chunks[key] = entry
	}
	if err := c.write(ctx, condemned); err != nil {
		return err
	}
	again, err := c.take(ctx)
	if err != nil {
		return err
	}
	for key := range p.due {
		if again.InUse.Find(key) != nil {
			delete(p.due, key)
			delete(p.record.Chunks, key)
			continue
		}
		// Also if it can't be deleted: what could not be deleted at one location
		// may be gone from the others.
		p.record.Chunks[key] = grace.Entry{Since: p.record.Chunks[key].Since, Condemned: true}
	}
	return nil
}

// record writes the grace record, unless there is nothing to record and there
// was nothing before.
func (c *collection) record(ctx context.Context, now, before *grace.Record) error {
	empty := len(now.Chunks) == 0 && len(now.Leftovers) == 0
	if empty && len(before.Chunks) == 0 && len(before.Leftovers) == 0 {
		return nil
	}
	return c.write(ctx, now)
}

// write replaces the grace record. It keeps the marks that another collection, at
// work at the same time, has set since this one read the record: without them, a
// writer doesn't notice what the other is about to delete.
func (c *collection) write(ctx context.Context, record *grace.Record) error {
	listed, err := c.keeper.Listed(ctx)
	if err != nil {
		return err
	}
	for key, condemned := range listed.Chunks {
		if !condemned || c.seen[key] {
			continue
		}
		entry, known := record.Chunks[key]
		if !known {
			entry.Since = c.options.Now()
		}
		entry.Condemned = true
		record.Chunks[key] = entry
	}
	return c.keeper.Write(ctx, record, c.options.Random)
}
