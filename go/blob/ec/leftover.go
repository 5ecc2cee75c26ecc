package ec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"powercloud.unidatum.com/go/blob"
)

// orphans are the kinds of blobs of which a write that was cut short can leave
// shards that belong to no blob. Those of chunks are listed as chunks.
var orphans = []blob.Kind{blob.KindManifest, blob.KindRecord}

// ListTemporary lists what interrupted writes left at the parts, and the blobs of
// which such a write left too few shards; see blob.Temporaries. Every part must
// answer.
func (l *Location) ListTemporary(ctx context.Context, fn func(blob.Temporary) error) error {
	for i, part := range l.parts {
		holder, ok := part.(blob.Temporaries)
		if !ok {
			continue
		}
		var stop error
		err := holder.ListTemporary(ctx, func(left blob.Temporary) error {
			left.Name = strconv.Itoa(i) + ":" + left.Name
			stop = fn(left)
			return stop
		})
		if err != nil && stop == nil {
			err = fmt.Errorf("%s: %w", part, err)
		}
		if err != nil {
			return err
		}
	}
	for _, kind := range orphans {
		errs, err := l.walk(ctx, kind, func(e *entry) error {
			if orphaned, err := l.orphaned(ctx, e); !orphaned || err != nil {
				return err
			}
			left := blob.Temporary{Name: e.name.String(), Mark: e.markOf(l.total)}
			for _, length := range e.lengths {
				left.Size += max(length, 0)
			}
			return fn(left)
		})
		if err != nil {
			return err
		}
		if countNil(errs) < l.total {
			return l.failures("listing the parts", errs)
		}
	}
	return nil
}

// orphaned reports whether some part holds a version of a blob that can't be put
// together and that no write has acknowledged.
func (l *Location) orphaned(ctx context.Context, e *entry) (bool, error) {
	if _, agree, ok := l.sizeFromLengths(e.lengths); ok && agree == e.present && agree >= l.data {
		return false, nil // All have one and the same.
	}
	t, release, err := l.inspect(ctx, e.name, inspectLimit)
	if err != nil {
		return false, err
	}
	defer release()
	return len(t.orphans()) > 0, nil
}

// orphans returns the versions that fewer parts have than could make up a blob,
// unless they are older than what is read, and will be dropped with what is behind
// it. There are none while a part can't be read, which might have another shard.
func (t *tally) orphans() map[versionID]bool {
	if t.count(unreachable) > 0 {
		return nil
	}
	best := t.best()
	found := map[versionID]bool{}
	for _, v := range t.versions {
		old := best != nil && newer(best.sequence, best.id, v.sequence, v.id)
		if v.count > 0 && v.count < t.data && !t.possible(v) && !old {
			found[v.id] = true
		}
	}
	return found
}

// RemoveTemporary removes what ListTemporary listed; see blob.Temporaries.
func (l *Location) RemoveTemporary(ctx context.Context, name string) error {
	if number, rest, ok := strings.Cut(name, ":"); ok {
		part, err := strconv.Atoi(number)
		if err != nil || part < 0 || part >= l.total {
			return fmt.Errorf("%.100q is not a leftover's name", name)
		}
		holder, ok := l.parts[part].(blob.Temporaries)
		if !ok {
			return nil
		}
		if err := holder.RemoveTemporary(ctx, rest); err != nil {
			return fmt.Errorf("%s: %w", l.parts[part], err)
		}
		return nil
	}
	parsed, err := blob.ParseName(name)
	if err != nil {
		return err
	}
	return l.removeOrphans(ctx, parsed)
}

// removeOrphans removes the versions of a blob that can't be put together.
func (l *Location) removeOrphans(ctx context.Context, name blob.Name) error {
	t, release, err := l.inspectAlone(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if t.count(unreachable) > 0 {
		return t.failure("shards can't be removed while a part can't be read")
	}
	found := t.orphans()
	errs := l.each(func(i int, _ blob.Location) error {
		if !slices.ContainsFunc(t.answers[i].records, func(r record) bool { return found[r.id] }) {
			return nil
		}
		return l.amend(ctx, i, name, nil, 0, func(a *answer) ([]record, bool, error) {
			kept := slices.Clone(a.records)
			kept = slices.DeleteFunc(kept, func(r record) bool { return found[r.id] })
			return kept, len(kept) < len(a.records), nil
		})
	})
	if countNil(errs) < l.total {
		return errors.Join(ctx.Err(), l.failures("removing shards", errs))
	}
	return nil
}
