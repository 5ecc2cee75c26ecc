package newest

import (
	"context"
	"errors"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/manifest"
)

// Absent reports whether the location with an index answered that it has no copy.
func (r Result) Absent(i int) bool { return i < len(r.Copies) && r.Copies[i].State == Missing }

// ReadLarge is the limit of an Update that looks at manifests of any size.
const ReadLarge = manifest.MaxBlob

// ReadSmall is the limit of an Update that many make at once.
const ReadSmall = smallManifest

// Update stores a version of an object's manifest, of which sealed is the blob, at a
// location that doesn't have it or a newer one. kept is the version that the location has
// instead, or zero when it was stored. Whoever else writes the object at the same time,
// nothing newer is replaced, but for two exceptions: a manifest of more than limit bytes
// isn't looked at, and a location that is no blob.Amender or blob.Superseder may replace
// what came at the last moment. absent says that the location was just seen to have none.
func (f *Finder) Update(ctx context.Context, location blob.Location, version manifest.Version, name blob.Name, sealed []byte, limit int64, absent bool) (kept manifest.Version, err error) {
	if looker, ok := location.(blob.Looker); ok && absent {
		if err := looker.CreateAbsent(ctx, name, sealed); !errors.Is(err, blob.ErrExists) {
			return kept, err
		}
	}
	err = blob.Supersede(ctx, location, name, limit, sealed, func(data []byte) bool {
		there, err := f.sealer.Open(name, data)
		if err != nil || there.Version.Compare(version) < 0 {
			return false
		}
		kept = there.Version
		return true
	})
	return kept, err
}
