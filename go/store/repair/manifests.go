package repair

import (
	"context"
	"errors"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/repository"
)

// repairManifests writes the newest version of every manifest to the reachable
// locations that lack it.
func (w *work) repairManifests(ctx context.Context) error {
	for _, name := range w.survey.Differing {
		// Found again: it may have been written since the survey.
		found := w.surveyor.Finder.Find(ctx, name)
		if err := ctx.Err(); err != nil {
			return err
		}
		if found.Manifest == nil || !w.whole(found.Manifest) {
			continue
		}
		for i, c := range found.Copies {
			if !c.Behind() || w.survey.Failed[i] != nil {
				continue
			}
			if behind, err := w.stillBehind(ctx, c.Location, name, found.Manifest.Version); err != nil {
				w.wrote(i, err)
			} else if behind {
				w.wrote(i, c.Location.Put(ctx, name, found.Blob))
			}
		}
	}
	return ctx.Err()
}

// stillBehind reports whether a location still lacks a version of a manifest.
// Other locations may have been slow to take it, and nothing newer that was
// written meanwhile may be lost.
func (w *work) stillBehind(ctx context.Context, location blob.Location, name blob.Name, version manifest.Version) (bool, error) {
	sealed, err := location.Get(ctx, name, nil, manifest.MaxBlob)
	switch {
	case errors.Is(err, blob.ErrNotFound) || errors.Is(err, blob.ErrTooLarge):
		return true, nil
	case err != nil:
		return false, err
	}
	stored, err := w.surveyor.Manifests.Open(name, sealed)
	return err != nil || stored.Version.Compare(version) < 0, nil
}

// whole reports whether some reachable location has a good copy of every chunk
// of a manifest. If not, older versions must not be overwritten by it.
func (w *work) whole(m *manifest.Manifest) bool {
	reachable := w.reachable()
	for _, ref := range m.Chunks {
		c := w.survey.InUse[w.surveyor.Chunks.Name(ref).ID]
		if c == nil || c.Present&reachable == 0 {
			return false
		}
	}
	return true
}

// repairHeaders writes the key header to the reachable locations that lack it.
// One that belongs to another cluster, or to another root key, is never
// touched.
func (w *work) repairHeaders(ctx context.Context) {
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
	case err != nil && !errors.Is(err, blob.ErrNotFound) && !errors.Is(err, blob.ErrTooLarge):
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
