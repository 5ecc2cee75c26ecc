package repair

import (
	"context"

	"powercloud.unidatum.com/go/store/lost"
)

// lostChunks returns the chunks in use of which no reachable location has a good
// copy.
func (w *work) lostChunks() lost.Chunks {
	chunks := lost.Chunks{}
	reachable := w.reachable()
	for key, c := range w.survey.InUse {
		if c.Present&reachable == 0 {
			chunks[key] = true
		}
	}
	return chunks
}

// recordLost brings the record of lost chunks up to date, so that putting an
// object again replaces the corrupt copies of its chunks.
func (w *work) recordLost(ctx context.Context) error {
	keeper, err := lost.NewKeeper(w.repo.Set, w.repo.Root)
	if err != nil {
		return err
	}
	listed, err := keeper.Listed(ctx)
	if err != nil {
		return err
	}
	chunks := w.corruptChunks(listed)
	for i, location := range w.repo.Set.Locations() {
		if w.survey.Failed[i] != nil {
			continue
		}
		if err := keeper.Write(ctx, location, chunks, w.options.Random); err != nil {
			w.refused(i, err)
		}
	}
	w.report.Replaceable = w.options.Verify
	return ctx.Err()
}

// corruptChunks returns the lost chunks of which some location has a corrupt
// copy, and those of the listed ones that may still be so: the others' copies
// were not read.
func (w *work) corruptChunks(listed lost.Chunks) lost.Chunks {
	corrupt := w.lostChunks()
	reachable := w.reachable()
	for key := range corrupt {
		if w.survey.InUse[key].Corrupt&reachable == 0 {
			// Where there is no copy, a writer doesn't rely on one.
			delete(corrupt, key)
		}
	}
	for key := range listed {
		c := w.survey.InUse[key]
		switch {
		case c == nil && w.survey.Unreferenced[key]&reachable != 0:
			corrupt[key] = true
		case c != nil && c.Present&reachable != 0 && !w.options.Verify:
			corrupt[key] = true
		}
	}
	return corrupt
}
