package survey

import (
	"context"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
)

// lackingTombstone reports whether the newest version is a tombstone that some
// location doesn't have.
func lackingTombstone(result newest.Result) bool {
	if result.Manifest == nil || !result.Manifest.Deleted {
		return false
	}
	for _, c := range result.Copies {
		if c.State == newest.Missing {
			return true
		}
	}
	return false
}

// countTombstones enters the tombstones that some location didn't have. A
// collection may be deleting them: they are looked at again once the record of
// removals is read. One that was in it from before the first look either still is,
// or is gone now.
func (v *Surveyor) countTombstones(ctx context.Context, s *Survey, lacking []blob.Name) error {
	if len(lacking) == 0 {
		return nil
	}
	removals, err := v.Removals.Removals(ctx)
	if err != nil {
		return err
	}
	for _, name := range lacking {
		v.Finder.Visit(ctx, name, func(result newest.Result) {
			entry, listed := removals.Agreed[name.ID]
			leaving := listed && lackingTombstone(result) && entry.Version == result.Manifest.Version
			v.count(s, name, result, leaving)
		})
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
