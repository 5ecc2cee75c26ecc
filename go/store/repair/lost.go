package repair

import (
	"context"
	"maps"
	"slices"

	"powercloud.unidatum.com/go/store/lost"
)

// lostChunks returns the chunks in use of which no reachable location has a good
// copy.
func (w *work) lostChunks() lost.Blobs {
	chunks := lost.Blobs{}
	reachable := w.reachable()
	for key, c := range w.survey.InUse.All() {
		if c.Present&reachable == 0 {
			chunks[key] = true
		}
	}
	return chunks
}

// recordLost brings the record of lost blobs up to date, so that putting an
// object again replaces the corrupt copies of its chunks, and no later repair takes
// a manifest that was lost for one that was made up.
func (w *work) recordLost(ctx context.Context) error {
	listed, err := w.keeper.Listed(ctx)
	if err != nil {
		return err
	}
	blobs := w.corruptChunks(listed)
	maps.Copy(blobs, w.lostManifests(listed))
	for i, location := range w.repo.Set.Locations() {
		if w.survey.Failed[i] != nil {
			continue
		}
		if err := w.keeper.Write(ctx, location, blobs, w.options.Random); err != nil {
			w.refused(i, err)
		}
	}
	w.report.Replaceable = w.options.Verify
	return ctx.Err()
}

// lostManifests returns the manifests that can't be read and of which it can't be
// told later that they may have been an object's, and those of the listed ones that
// may still be there.
func (w *work) lostManifests(listed lost.Blobs) lost.Blobs {
	manifests := lost.Blobs{}
	// What gets a key header now counts as lacking the manifest from then on.
	joining := w.reachable()&^w.surveyor.Members != 0
	for _, name := range slices.Concat(w.survey.Unreadable, w.survey.Newer) {
		if joining || listed[name.ID] {
			manifests[name.ID] = true
		}
	}
	if w.reachable().Count() < len(w.survey.Failed) {
		maps.Copy(manifests, listed)
	}
	return manifests
}

// corruptChunks returns the lost chunks of which some location has a corrupt
// copy, or may have for all that is known, and those of the listed ones that may
// still be so: the others' copies were not read.
func (w *work) corruptChunks(listed lost.Blobs) lost.Blobs {
	corrupt := w.lostChunks()
	reachable := w.reachable()
	for key := range corrupt {
		if w.survey.InUse.Find(key).Corrupt&reachable == 0 {
			// Where there is no copy, a writer doesn't rely on one.
			delete(corrupt, key)
		}
	}
	if w.options.Verify && len(w.survey.Unreadable)+len(w.survey.Newer) > 0 {
		// A manifest that can't be read may need these, and nobody has read them.
		for key, where := range w.survey.Unreferenced.All() {
			if where&reachable != 0 {
				corrupt[key] = true
			}
		}
	}
	for key := range listed {
		c := w.survey.InUse.Find(key)
		switch {
		case c == nil && w.survey.Unreferenced.Find(key)&reachable != 0:
			corrupt[key] = true
		case c != nil && c.Present&reachable != 0 && !w.options.Verify:
			corrupt[key] = true
		}
	}
	return corrupt
}
