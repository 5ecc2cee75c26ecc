package gc

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/scan"
	"powercloud.unidatum.com/go/store/tombstones"
	"powercloud.unidatum.com/go/store/workers"
)

// tombstonesAtOnce is how many tombstones are read or deleted at once.
const tombstonesAtOnce = 16

// Tombstone describes the tombstone of one removed object.
type Tombstone struct {
	// Object is the object's name.
	Object string
	// Removed is when it was removed.
	Removed time.Time
	// State says what is to become of the tombstone.
	State TombstoneState
}

// TombstoneState says what is to become of a tombstone.
type TombstoneState int

const (
	// TombstoneWaiting is at every location, but not known to be for long enough.
	TombstoneWaiting TombstoneState = iota
	// TombstoneIncomplete isn't at every location: a repair brings it there.
	TombstoneIncomplete
	// TombstoneDue has been at every location for the grace period.
	TombstoneDue
)

// TombstoneResult is what a collection of tombstones found and did.
type TombstoneResult struct {
	// Total counts the tombstones that were found.
	Total int
	// Deleted counts those that were deleted, or would be in a dry run.
	Deleted int
	// Incomplete counts those that some location doesn't have.
	Incomplete int
	// Waiting counts those whose grace period isn't over.
	Waiting int
	// List has every tombstone in the order of the objects' names, in a dry run
	// only.
	List []Tombstone
}

// Tombstones deletes the tombstones that every location has had for the grace
// period, across two runs. A location that has one can't bring the object back, so
// it isn't needed any more, unless a location comes back that is older than that.
// It refuses to run unless every location can be reached.
func Tombstones(ctx context.Context, repo *repository.Repository, options Options) (TombstoneResult, error) {
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Random == nil {
		options.Random = rand.Reader
	}
	manifests, err := manifest.NewSealer(repo.Root)
	if err != nil {
		return TombstoneResult{}, err
	}
	keeper, err := tombstones.NewKeeper(repo.Set, repo.Root)
	if err != nil {
		return TombstoneResult{}, err
	}
	b := &burial{repo: repo, options: options, finder: newest.NewFinder(repo.Set, manifests), keeper: keeper}
	// A read that mends would bring back what is being deleted.
	return b.run(blob.ReadOnly(ctx))
}

// burial is a collection of tombstones at work.
type burial struct {
	repo    *repository.Repository
	options Options
	finder  *newest.Finder
	keeper  *tombstones.Keeper

	// table is what the nodes have recorded.
	table *rollback.Table
	// seen is the record of the tombstones at every location as it will stand.
	seen tombstones.Entries
	// kept are the tombstones whose marks stay: they may be deleted yet.
	kept tombstones.Entries
	// marked is what this run has entered into the record of removals.
	marked tombstones.Entries
}

// tombstone is one that was found.
type tombstone struct {
	name    blob.Name
	object  string
	version manifest.Version
	state   TombstoneState
	// leaving says that a collection has begun to delete it.
	leaving bool
	// since is when it was first found at every location.
	since time.Time
}

func (b *burial) run(ctx context.Context) (TombstoneResult, error) {
	removals, err := b.keeper.AllRemovals(ctx)
	if err != nil {
		return TombstoneResult{}, needed(err)
	}
	if b.table, err = b.repo.Guard.All(ctx); err != nil {
		return TombstoneResult{}, err
	}
	found, err := b.find(ctx, removals)
	if err != nil {
		return TombstoneResult{}, err
	}
	recorded, err := b.keeper.Seen(ctx)
	if err != nil {
		return TombstoneResult{}, needed(err)
	}
	due, result := b.plan(found, recorded, removals)
	if b.options.DryRun {
		result.List = list(found)
		return result, nil
	}
	result.Deleted = 0
	if len(b.seen) > 0 || len(recorded) > 0 {
		if err := b.keeper.WriteSeen(ctx, b.seen, b.options.Random); err != nil {
			return TombstoneResult{}, needed(err)
		}
	}
	if len(due) == 0 && len(removals.Listed) == 0 {
		return result, nil
	}
	failure := b.removeAll(ctx, due, &result)
	// Recorded even when the run was interrupted.
	if err := b.record(context.WithoutCancel(ctx)); failure == nil {
		failure = err
	}
	return result, failure
}

// record writes what is left in both records.
func (b *burial) record(ctx context.Context) error {
	if err := b.mark(ctx, b.kept); err != nil {
		return err
	}
	return needed(b.keeper.WriteSeen(ctx, b.seen, b.options.Random))
}

// plan decides which tombstones are due.
func (b *burial) plan(found []*tombstone, recorded tombstones.Entries, removals *tombstones.Removals) ([]*tombstone, TombstoneResult) {
	now := b.options.Now()
	result := TombstoneResult{Total: len(found)}
	b.seen, b.kept = tombstones.Entries{}, tombstones.Entries{}
	var due []*tombstone
	for _, t := range found {
		if t.state == TombstoneIncomplete {
			result.Incomplete++
			continue
		}
		entry, known := recorded[t.name.ID]
		if !known || entry.Version != t.version || entry.Since.After(now) {
			entry = tombstones.Entry{Version: t.version, Since: now}
			known = false
		}
		b.seen[t.name.ID] = entry
		t.since = entry.Since
		marked, listed := removals.Listed[t.name.ID]
		switch {
		case listed && b.live(marked, now):
			// Another collection may be deleting it.
		case t.leaving || known && now.Sub(entry.Since) >= b.options.Grace:
			t.state = TombstoneDue
			due = append(due, t)
			result.Deleted++
			continue
		}
		result.Waiting++
	}
	slices.SortStableFunc(due, func(x, y *tombstone) int { return x.since.Compare(y.since) })
	return due, result
}

// live reports whether the collection that set a mark may still be at work.
func (b *burial) live(mark tombstones.Entry, now time.Time) bool {
	return mark.Since.After(now) || now.Sub(mark.Since) < min(abandoned, b.options.Grace)
}

// find returns the tombstones that are the newest version of a manifest. Every copy
// of each is read, whatever is known of it.
func (b *burial) find(ctx context.Context, removals *tombstones.Removals) ([]*tombstone, error) {
	var names []blob.Name
	scanner := scan.Scanner{Set: b.repo.Set, Finder: b.finder, Catalog: b.repo.Catalog}
	expect := func(int64) {}
	done := expect
	if p := b.options.Progress; p != nil {
		expect, done = p.Expect, p.Done
	}
	errs, err := scanner.Manifests(ctx, nil, expect, func(name blob.Name, result newest.Result) {
		done(1)
		if result.Manifest != nil && result.Manifest.Deleted {
			names = append(names, name)
		}
	})
	if err != nil {
		return nil, err
	}
	for i, err := range errs {
		if err != nil {
			return nil, b.unreachable(i, err)
		}
	}
	for i, location := range b.repo.Set.Locations() {
		// A deletion must reach every part of a set.
		if err := blob.ProbeAll(ctx, location); err != nil {
			return nil, b.unreachable(i, err)
		}
	}
	return b.look(ctx, names, removals)
}

// look reads every copy of the manifests and returns those that are tombstones.
func (b *burial) look(ctx context.Context, names []blob.Name, removals *tombstones.Removals) ([]*tombstone, error) {
	var mu sync.Mutex
	var found []*tombstone
	err := workers.Each(ctx, tombstonesAtOnce, names, func(ctx context.Context, name blob.Name) (failure error) {
		b.finder.Visit(ctx, name, func(result newest.Result) {
			for i, c := range result.Copies {
				if c.State == newest.Unreachable {
					failure = b.unreachable(i, c.Err)
					return
				}
			}
			if result.Manifest == nil || !result.Manifest.Deleted {
				return
			}
			t := &tombstone{name: name, version: result.Manifest.Version}
			if b.options.DryRun {
				t.object = result.Manifest.Name
			}
			mark, marked := removals.Agreed[name.ID]
			t.leaving = marked && mark.Version == t.version
			if !everywhere(result, t.leaving) || b.table.Behind(name.ID, result.Manifest) {
				t.state = TombstoneIncomplete
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, t)
		})
		return failure
	})
	return found, err
}

// everywhere reports whether every location has the newest version, or, when it is
// leaving, none at all.
func everywhere(result newest.Result, leaving bool) bool {
	for _, c := range result.Copies {
		if c.State != newest.Current && !(leaving && c.State == newest.Missing) {
			return false
		}
	}
	return true
}

// needed says that a location which failed was needed.
func needed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: gc needs every backend, and %w", err)
}

func (b *burial) unreachable(i int, err error) error {
	return needed(fmt.Errorf("%s is unreachable: %w", b.repo.Locations[i], err))
}

// list describes tombstones in the order of their objects' names.
func list(found []*tombstone) []Tombstone {
	all := make([]Tombstone, len(found))
	for i, t := range found {
		all[i] = Tombstone{Object: t.object, Removed: time.Unix(0, t.version.Time), State: t.state}
	}
	slices.SortFunc(all, func(x, y Tombstone) int { return cmp.Compare(x.Object, y.Object) })
	return all
}
