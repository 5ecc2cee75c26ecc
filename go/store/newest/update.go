package newest

import (
	"context"
	"errors"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

// Absent reports whether the location with an index answered that it has no copy.
func (r Result) Absent(i int) bool { return i < len(r.Copies) && r.Copies[i].State == Missing }

// Update stores a version of an object's manifest, of which sealed is the blob, at a
// location that doesn't have it or a newer one. kept is the version that the location has
// instead, or zero when it was stored. What may be newer for all that is known, of a later
// version of the format, stays as well; the error is then manifest.ErrNewer. Whoever else writes the object at the same time,
// nothing newer is replaced, unless the location is no blob.Amender or blob.Superseder:
// it may replace what came at the last moment. absent says that the location was just seen
// to have none.
func (f *Finder) Update(ctx context.Context, location blob.Location, version manifest.Version, name blob.Name, sealed []byte, absent bool) (kept manifest.Version, err error) {
	if looker, ok := location.(blob.Looker); ok && absent {
		if err := looker.CreateAbsent(ctx, name, sealed); !errors.Is(err, blob.ErrExists) {
			return kept, err
		}
	}
	unread := false
	stays := func(data []byte) bool {
		there, err := f.sealer.Open(name, data)
		if unread = errors.Is(err, manifest.ErrNewer); unread {
			return true
		}
		if err != nil || there.Version.Compare(version) < 0 {
			return false
		}
		kept = there.Version
		return true
	}
	err = blob.Supersede(ctx, location, name, smallManifest, sealed, stays)
	if errors.Is(err, blob.ErrTooLarge) {
		err = f.supersedeLarge(ctx, location, name, sealed, stays)
	}
	if err == nil && unread {
		err = manifest.ErrNewer
	}
	return kept, err
}

// supersedeLarge is blob.Supersede where something larger than a small manifest is.
func (f *Finder) supersedeLarge(ctx context.Context, location blob.Location, name blob.Name, sealed []byte, stays func([]byte) bool) error {
	if err := f.superseding.Acquire(ctx, 1); err != nil {
		return err
	}
	defer f.superseding.Release(1)
	for limit := int64(smallManifest); limit < manifest.MaxBlob; {
		limit = min(limit*growth, manifest.MaxBlob)
		err := blob.Supersede(ctx, location, name, limit, sealed, stays)
		if !errors.Is(err, blob.ErrTooLarge) {
			return err
		}
	}
	return location.Put(ctx, name, sealed) // No manifest is as large.
}
