package survey

import (
	"cmp"
	"context"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/newest"
	"powercloud.unidatum.com/go/store/scan"
)

// eachManifest calls visit for the newest version of every manifest that any
// location lists, from one goroutine at a time. Locations that can't be listed are
// recorded as failed.
func (v *Surveyor) eachManifest(ctx context.Context, failed []error, visit func(blob.Name, newest.Result)) error {
	scanner := scan.Scanner{Set: v.Set, Finder: v.Finder, Catalog: v.Catalog}
	errs, err := scanner.Manifests(ctx, failed, v.expect, func(name blob.Name, result newest.Result) {
		visit(name, result)
		v.done(1)
	})
	if err != nil {
		return err
	}
	for i, err := range errs {
		failed[i] = cmp.Or(failed[i], err)
	}
	return nil
}

// Users returns the names of the objects that need any of the given chunks,
// sorted. It reads the manifests again.
func (v *Surveyor) Users(ctx context.Context, s *Survey, chunks map[Key]bool) ([]string, error) {
	if len(chunks) == 0 {
		return nil, nil
	}
	var users []string
	err := v.eachManifest(ctx, slices.Clone(s.Failed), func(_ blob.Name, result newest.Result) {
		if !result.Live() {
			return
		}
		for _, ref := range result.Manifest.Chunks {
			if chunks[v.Chunks.Name(ref).ID] {
				users = append(users, result.Manifest.Name)
				return
			}
		}
	})
	slices.Sort(users)
	return users, err
}
