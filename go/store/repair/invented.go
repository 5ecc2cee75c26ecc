package repair

import (
	"context"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
)

// removeInvented deletes the manifests that can't be read and never were
// acknowledged: a location can make up any number of them, and gc can't know
// what they need.
func (w *work) removeInvented(ctx context.Context) error {
	for _, name := range w.survey.Invented {
		// Found again: it may have been written since the survey, or read
		// badly.
		found := w.surveyor.Finder.Find(ctx, name)
		if err := ctx.Err(); err != nil {
			return err
		}
		if !w.surveyor.Invented(name, found) {
			continue
		}
		for i, c := range found.Copies {
			if c.State == newest.Corrupt && w.survey.Failed[i] == nil {
				w.removeAt(ctx, i, c.Location, name)
			}
		}
	}
	return ctx.Err()
}

// removeAt deletes a manifest at the location with index i. If somebody wrote one
// of that name meanwhile, the copy that is gone may have been the new one: it is
// put back.
func (w *work) removeAt(ctx context.Context, i int, location blob.Location, name blob.Name) {
	err := location.Delete(ctx, name)
	w.wrote(i, err)
	if err != nil {
		return
	}
	w.report.Locations[i].Removed++
	if now := w.surveyor.Finder.Find(ctx, name); now.Manifest != nil && now.Copies[i].Behind() {
		_, err := w.surveyor.Finder.Update(ctx, location, now.Manifest.Version, name, now.Blob, false)
		w.wrote(i, err)
	}
}
