// Package open makes locations from what was given in --repo.
package open

import (
	"context"
	"errors"
	"fmt"
	"os"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/dir"
)

// ErrUnsupported says that this program can't use a kind of location.
var ErrUnsupported = errors.New("this build has no such location yet; use directories")

// Open returns the location that spec describes. It doesn't ask the location
// anything: one that is down fails when it is used, like one that goes down
// later.
func Open(_ context.Context, spec blob.Spec) (blob.Location, error) {
	if spec.Scheme != blob.SchemeDir {
		return nil, fmt.Errorf("%s locations: %w", spec.Scheme, ErrUnsupported)
	}
	return dir.New(spec.Dir)
}

// All opens the locations of a list. Its errors name the location. Besides what
// Open refuses it refuses a directory that is given under two names, such as
// through a symbolic link: its blobs would count as two copies and be one.
func All(ctx context.Context, specs []blob.Spec) ([]blob.Location, error) {
	locations := make([]blob.Location, len(specs))
	found := make([]os.FileInfo, len(specs))
	for i, spec := range specs {
		var err error
		if locations[i], err = Open(ctx, spec); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		if spec.Scheme != blob.SchemeDir {
			continue
		}
		// A directory that can't be looked at is found out about when it is used.
		if found[i], err = os.Stat(spec.Dir); err != nil {
			continue
		}
		for j := range i {
			if found[j] != nil && os.SameFile(found[i], found[j]) {
				return nil, fmt.Errorf("locations %s and %s are the same directory", specs[j], spec)
			}
		}
	}
	return locations, nil
}
