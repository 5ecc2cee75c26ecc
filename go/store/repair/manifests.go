package repair

import (
	"context"
	"errors"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/repository"
	"powercloud.unidatum.com/go/store/survey"
)

// writeTries is how often a manifest is written when newer ones arrive meanwhile.
const writeTries = 3

// repairManifests writes the newest version of every manifest to the reachable
// locations that lack it.
func (w *work) repairManifests(ctx context.Context) error {
	for _, name := range w.survey.Differing {
		// Found again: it may have been written since the survey.
		found := w.surveyor.Finder.Find(ctx, name)
		if err := ctx.Err(); err != nil {
			return err
		}
		if found.Manifest == nil || !w.whole(found.Manifest) || w.surveyor.Marks.Behind(name.ID, found.Manifest) {
			continue
		}
		among := w.reachable()
		for range writeTries {
			among = w.update(ctx, name, found, among)
			if among == 0 {
				break
			}
			// A newer version may have arrived there between the last look
			// and the write, which then replaced it.
			found = w.surveyor.Finder.Find(ctx, name)
		}
	}
	return ctx.Err()
}

// update writes the newest version of a manifest to those of the given locations
// that lack it, and returns the ones that took it.
func (w *work) update(ctx context.Context, name blob.Name, found newest.Result, among survey.Locations) survey.Locations {
	var took survey.Locations
	for i, c := range found.Copies {
		if found.Manifest == nil || !among.Has(i) || !c.Behind() || w.survey.Failed[i] != nil {
			continue
		}
		// Others may have been slow to take it, or write something newer just now.
		kept, err := w.surveyor.Finder.Update(ctx, c.Location, found.Manifest.Version, name, found.Blob, false)
		if errors.Is(err, manifest.ErrNewer) {
			continue // It is the location's, and no fault of its.
		}
		stored := kept == (manifest.Version{})
		if stored || err != nil {
			w.wrote(i, err)
		}
		if stored && err == nil {
			took = took.With(i)
		}
	}
	return took
}

// whole reports whether some reachable location has a good copy of every chunk
// of a manifest. If not, older versions must not be overwritten by it.
func (w *work) whole(m *manifest.Manifest) bool {
	reachable := w.reachable()
	for _, ref := range m.Chunks {
		c := w.survey.InUse.Find(w.surveyor.Chunks.Name(ref).ID)
		if c == nil || c.Present&reachable == 0 {
			return false
		}
	}
	return true
}

// repairHeaders writes the key header to the reachable locations that lack it.
// One that belongs to another cluster, or to another root key, is never
// touched; and while two headers of the cluster are as new as each other, none
// is.
func (w *work) repairHeaders(ctx context.Context) {
	if w.report.Conflict != nil {
		return
	}
	for i, location := range w.repo.Locations {
		if w.survey.Failed[i] != nil {
			continue
		}
		switch location.State {
		case repository.HeaderMissing, repository.HeaderStale, repository.HeaderDamaged:
			w.wrote(i, w.putHeader(ctx, location))
		}
	}
}

// putHeader writes the key header to a location, unless one has appeared there
// that isn't the one that was found before.
func (w *work) putHeader(ctx context.Context, location *repository.Location) error {
	stored, err := location.Get(ctx, blob.Header(), nil, keys.MaxHeader)
	switch {
	case err == nil && !location.Holds(stored):
		return errors.New("its key header changed meanwhile")
	case !blob.Answered(err):
		return err
	}
	return location.Put(ctx, blob.Header(), w.repo.Header)
}

// flush makes what was written durable.
func (w *work) flush(ctx context.Context) {
	for i, location := range w.repo.Set.Locations() {
		row := &w.report.Locations[i]
		if row.Repaired == 0 || row.Err != nil {
			continue
		}
		if err := location.Flush(ctx); err != nil {
			row.Err = err
		}
	}
}
