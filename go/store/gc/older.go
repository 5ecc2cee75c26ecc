package gc

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/survey"
)

// keepOlder has the chunks count as in use that the older versions of unsettled
// manifests need. A write that failed, or isn't done yet, may have left the newest
// version at so few locations that losing them brings an older one back, which was
// acknowledged.
func (c *collection) keepOlder(ctx context.Context, found *survey.Survey) error {
	for _, name := range found.Unsettled {
		for _, location := range c.repo.Set.Locations() {
			if err := c.keepAt(ctx, found, location, name); err != nil {
				return fmt.Errorf("store: gc needs every manifest, and one at %s can't be read: %w", location, err)
			}
		}
	}
	return ctx.Err()
}

// keepAt is keepOlder for one manifest at one location.
func (c *collection) keepAt(ctx context.Context, found *survey.Survey, location blob.Location, name blob.Name) error {
	var older *manifest.Manifest
	var newer error
	_, err := blob.GetAccepted(ctx, location, name, nil, manifest.MaxBlob, func(data []byte) (err error) {
		older, err = c.surveyor.Manifests.Open(name, data)
		if errors.Is(err, manifest.ErrNewer) {
			newer = err // One that is older must not stand in for it.
			return nil
		}
		return err
	})
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	if err := errors.Join(err, newer); err != nil {
		return err
	}
	for i, ref := range older.Chunks {
		found.Keep(c.surveyor.Chunks.Name(ref).ID, ref, older.ChunkSize(i)+chunk.Overhead)
	}
	return nil
}
