package gc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/rollback"
	"powercloud.unidatum.com/go/store/tombstones"
	"powercloud.unidatum.com/go/store/workers"
)

const (
	// patience is how long after it was marked a tombstone may be deleted: a
	// collection that was suspended for long must not go on where it was.
	patience = 10 * time.Minute
	// abandoned is the age of a mark, or the grace period if that is shorter, at
	// which the collection that set it has ended for certain.
	abandoned = time.Hour
)

// ErrAtWork means that another collection of tombstones is running.
var ErrAtWork = errors.New("store: another 'pcctl gc --tombstones' is at work; try again when it has ended")

// errLate means that too much time has passed since tombstones were marked.
var errLate = fmt.Errorf("store: deleting tombstones took more than %s, or the clock was set; run it again", patience)

// removeAll deletes what is due, a part at a time.
func (b *burial) removeAll(ctx context.Context, due []*tombstone, result *TombstoneResult) error {
	if p := b.options.Progress; p != nil {
		p.Expect(int64(len(due)))
	}
	for len(due) > 0 {
		// Half of the record is left to what failed, and to other collections.
		part := due[:min(len(due), tombstones.MaxRemovals/2)]
		due = due[len(part):]
		deleted, err := b.remove(ctx, part)
		result.Deleted += deleted
		if err != nil {
			return err
		}
	}
	return nil
}

// remove marks tombstones as being deleted, then looks at each once more, and
// deletes it. It returns how many are gone from every location.
func (b *burial) remove(ctx context.Context, due []*tombstone) (int, error) {
	marked := b.options.Now()
	marks := maps.Clone(b.kept)
	recorded := make(map[rollback.Key]rollback.Mark, len(due))
	for _, t := range due {
		recorded[t.name.ID] = rollback.Mark{Time: t.version.Time, Deleted: true}
		marks[t.name.ID] = tombstones.Entry{Version: t.version, Since: marked}
	}
	// Else an object whose removal isn't recorded would count as hidden.
	if err := b.repo.Guard.MustRecord(ctx, recorded); err != nil {
		return 0, fmt.Errorf("recording removals with the nodes: %w; try again when they can be reached", err)
	}
	if err := b.have(ctx, due); err != nil {
		return 0, err
	}
	// This flushes every location: no tombstone can be lost in a power cut that
	// others have deleted by then.
	if err := b.mark(ctx, marks); err != nil {
		return 0, err
	}
	if err := b.verify(ctx, marks); err != nil {
		return 0, err
	}
	failures := make([]error, len(b.repo.Set.Locations()))
	var mu sync.Mutex
	var gone []*tombstone
	err := workers.Each(ctx, tombstonesAtOnce, due, func(ctx context.Context, t *tombstone) error {
		result, errs := b.removeOne(ctx, t, marked)
		mu.Lock()
		defer mu.Unlock()
		switch result {
		case removed:
			gone = append(gone, t)
		case uncertain:
			// It may be deleted later by a location that seemed to fail.
			b.kept[t.name.ID] = marks[t.name.ID]
		case spared:
			delete(b.seen, t.name.ID)
		case late:
			return errLate
		}
		for i, err := range errs {
			if failures[i] == nil && err != nil {
				failures[i] = fmt.Errorf("%s: deleting a tombstone: %w", b.repo.Locations[i], err)
			}
		}
		if p := b.options.Progress; p != nil {
			p.Done(1)
		}
		return nil
	})
	failure := errors.Join(append(failures, err)...)
	// The deletions must last before their marks are taken away.
	if err := flush(context.WithoutCancel(ctx), b.repo.Set); err != nil {
		for _, t := range gone {
			b.kept[t.name.ID] = marks[t.name.ID]
		}
		return 0, errors.Join(failure, err)
	}
	for _, t := range gone {
		delete(b.seen, t.name.ID)
	}
	return len(gone), failure
}

// have asks every location about its copies of tombstones, so that its next flush
// makes them last, whoever wrote them.
func (b *burial) have(ctx context.Context, due []*tombstone) error {
	return workers.Each(ctx, tombstonesAtOnce, due, func(ctx context.Context, t *tombstone) error {
		for i, location := range b.repo.Set.Locations() {
			if _, err := location.Stat(ctx, t.name); !blob.Answered(err) {
				return b.unreachable(i, err)
			}
		}
		return nil
	})
}

// outcome is what became of a tombstone that was due.
type outcome int

const (
	// untouched is one that could not be looked at.
	untouched outcome = iota
	// late is one whose mark is too old.
	late
	// spared is one that is not every location's newest version any more.
	spared
	removed
	uncertain
)

// removeOne looks at a tombstone that is marked, and deletes it where it is. The
// errors are the locations'.
func (b *burial) removeOne(ctx context.Context, t *tombstone, marked time.Time) (result outcome, errs []error) {
	b.finder.Visit(ctx, t.name, func(found newest.Result) {
		errs = make([]error, len(found.Copies))
		for i, c := range found.Copies {
			if c.State == newest.Unreachable {
				errs[i] = c.Err
			}
		}
		switch age := b.options.Now().Sub(marked); {
		case ctx.Err() != nil || errors.Join(errs...) != nil:
			result = untouched
			return
		case age > patience || age < 0:
			result = late
			return
		case found.Manifest == nil || found.Manifest.Version != t.version || !everywhere(found, t.leaving):
			result = spared
			return
		}
		result = removed
		for i, c := range found.Copies {
			if c.State == newest.Current {
				errs[i] = c.Location.Delete(ctx, t.name)
			}
		}
		if errors.Join(errs...) != nil {
			result = uncertain
		}
	})
	return result, errs
}

// mark makes these the marks of this run in the record of removals. Those of other
// collections stay, unless they have ended for certain.
func (b *burial) mark(ctx context.Context, marks tombstones.Entries) error {
	listed, err := b.keeper.AllRemovals(ctx)
	if err != nil {
		return needed(err)
	}
	now := b.options.Now()
	all := maps.Clone(marks)
	for key, entry := range listed.Listed {
		if entry.Since.After(now) {
			entry.Since = now // Else it would never count as abandoned.
		}
		if _, own := marks[key]; !own && !same(b.marked[key], entry) && b.live(entry, now) {
			all[key] = entry
		}
	}
	b.marked = marks
	return needed(b.keeper.WriteRemovals(ctx, all, b.options.Random))
}

// verify makes sure that the marks are in every location's record: another
// collection may have read it before, and written it after them.
func (b *burial) verify(ctx context.Context, marks tombstones.Entries) error {
	removals, err := b.keeper.AllRemovals(ctx)
	if err != nil {
		return needed(err)
	}
	for key, mark := range marks {
		if !same(removals.Agreed[key], mark) {
			return ErrAtWork
		}
	}
	return nil
}

// same reports whether two marks were set by the same collection.
func same(a, b tombstones.Entry) bool { return a.Version == b.Version && a.Since.Equal(b.Since) }
