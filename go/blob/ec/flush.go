package ec

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/ledger"
)

// retirers is how many blobs have their older versions dropped at once.
const retirers = 8

// replacement is a version that has replaced older ones, which are to be dropped.
type replacement struct {
	id versionID
	// found says that others may have written it, whom nobody knows to have
	// flushed it.
	found bool
}

// Delete removes a blob; see blob.Location. It must reach every part: one that
// misses it would bring a shard back.
func (l *Location) Delete(ctx context.Context, name blob.Name) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	unlock, err := l.names.lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	l.mu.Lock()
	l.deletes = true
	delete(l.replaced, name)
	l.mu.Unlock()
	errs := l.each(func(_ int, part blob.Location) error { return part.Delete(ctx, name) })
	return l.enough(ctx, errs, l.total, "shards deleted")
}

// Flush makes what was written and deleted outlast a power cut; see blob.Location.
// A blob is durable once K+1 parts took it and flushed. Then it drops the versions
// that were replaced.
func (l *Location) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	covered, deletes := l.writes.Last(), l.deletes
	replaced := l.replaced
	l.replaced, l.deletes = map[blob.Name]replacement{}, false
	l.mu.Unlock()

	errs := l.each(func(_ int, part blob.Location) error { return part.Flush(ctx) })
	flushed := ledger.Succeeded(errs)

	l.mu.Lock()
	durable := l.writes.Durable(flushed)
	failed := durable < l.quorum() || deletes && flushed.Count() < l.total
	if failed {
		l.deletes = l.deletes || deletes
		maps.Copy(replaced, l.replaced)
		l.replaced = replaced
	} else {
		l.writes.Settle(covered)
	}
	l.mu.Unlock()
	switch {
	case failed && ctx.Err() != nil:
		return ctx.Err()
	case durable < l.quorum():
		return l.failures(fmt.Sprintf("%d/%d shards flushed, need %d", durable, l.total, l.quorum()), l.withMissed(errs))
	case failed:
		return l.enough(ctx, errs, l.total, "parts flushed what was deleted")
	}
	l.retireAll(ctx, replaced, flushed)
	return nil
}

// retireAll drops the versions that were replaced by those given. What it can't
// drop stays until the blob is replaced again, or repaired.
func (l *Location) retireAll(ctx context.Context, replaced map[blob.Name]replacement, flushed ledger.Places) {
	work := make(chan blob.Name)
	var wait sync.WaitGroup
	for range min(retirers, len(replaced)) {
		wait.Go(func() {
			for name := range work {
				l.retire(ctx, name, replaced[name], flushed)
			}
		})
	}
	for name := range replaced {
		work <- name
	}
	close(work)
	wait.Wait()
}

// retire drops what is behind a version at every part, if enough parts that have
// been flushed have that version.
func (l *Location) retire(ctx context.Context, name blob.Name, by replacement, flushed ledger.Places) {
	t, release, err := l.inspectAlone(ctx, name)
	if err != nil {
		return
	}
	defer release()
	v := t.version(by.id)
	if v == nil {
		return
	}
	if by.found {
		flushed = ledger.Succeeded(l.rely(ctx, t, v, make([]error, l.total)))
	}
	if !v.durable(flushed, l.quorum()) {
		return
	}
	l.each(func(i int, _ blob.Location) error {
		if n := len(t.answers[i].records); n > 1 && t.answers[i].has(by.id) != nil {
			return l.shorten(ctx, i, name, by.id)
		}
		return nil
	})
}

// rely makes what parts hold of a version outlast a power cut, whoever wrote it. It
// returns the errors of the parts; those that have one already aren't asked.
func (l *Location) rely(ctx context.Context, t *tally, v *version, errs []error) []error {
	return l.each(func(i int, part blob.Location) error {
		if errs[i] != nil {
			return errs[i]
		}
		if t.holds(i, v) {
			// A flush covers what others wrote only once it was found with Stat.
			if _, err := part.Stat(ctx, t.name); err != nil {
				return err
			}
		}
		return part.Flush(ctx)
	})
}

// durable reports whether so many of the parts given have the version.
func (v *version) durable(flushed ledger.Places, need int) bool {
	n := 0
	for _, part := range v.parts {
		if part >= 0 && flushed[part] {
			n++
		}
	}
	return n >= need
}

// shorten has a part drop what is behind a version.
func (l *Location) shorten(ctx context.Context, part int, name blob.Name, id versionID) error {
	return l.amend(ctx, part, name, nil, 0, func(a *answer) ([]record, bool, error) {
		for i := range a.records {
			if a.records[i].id == id && i < len(a.records)-1 {
				return a.records[:i+1], true, nil
			}
		}
		return nil, false, nil
	})
}

// withMissed returns the errors of a flush and, for the parts without one, why
// they missed a write: a flush can fall short through those.
func (l *Location) withMissed(errs []error) []error {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(errs)
	for i, err := range l.missed {
		if all[i] == nil {
			all[i] = err
		}
	}
	return all
}
