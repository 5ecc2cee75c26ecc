// Package open makes locations from what was given in --repo.
package open

import (
	"errors"
	"fmt"
	"os"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/dir"
	"powercloud.unidatum.com/go/blob/ec"
	"powercloud.unidatum.com/go/blob/s3"
)

// ErrUnsupported says that this program can't use a kind of location.
var ErrUnsupported = errors.New("this build has no such location yet")

// Options are what locations take from their surroundings.
type Options struct {
	// Getenv looks up the variables that hold a bucket's credentials; os.Getenv
	// when nil.
	Getenv func(string) string
}

// Open returns the location that spec describes. It doesn't ask the location
// anything: one that is down fails when it is used, like one that goes down
// later. It fails if the credentials of a bucket aren't there.
func (o Options) Open(spec blob.Spec) (blob.Location, error) {
	switch spec.Scheme {
	case blob.SchemeDir:
		return dir.New(spec.Dir)
	case blob.SchemeS3:
		return s3.New(spec, s3.Options{Getenv: o.Getenv})
	case blob.SchemeErasure:
		parts := make([]blob.Location, len(spec.Parts))
		for i, part := range spec.Parts {
			var err error
			if parts[i], err = o.Open(part); err != nil {
				return nil, fmt.Errorf("%s: %w", part, err)
			}
		}
		return ec.New(spec.String(), spec.Data, parts)
	}
	return nil, fmt.Errorf("%s locations: %w", spec.Scheme, ErrUnsupported)
}

// All opens the locations of a list. Its errors name the location. Besides what
// Open refuses it refuses a directory that is given under two names, such as
// through a symbolic link: its blobs would count as two copies and be one. So it
// does for a part of an erasure-coded set.
func (o Options) All(specs []blob.Spec) ([]blob.Location, error) {
	locations := make([]blob.Location, len(specs))
	var seen directories
	for i, spec := range specs {
		var err error
		if locations[i], err = o.Open(spec); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
		if err := seen.add(spec); err != nil {
			return nil, err
		}
	}
	return locations, nil
}

// directories are those that were opened and could be looked at.
type directories []directory

type directory struct {
	spec blob.Spec
	info os.FileInfo
}

// add enters a location's directories, and refuses one that was entered before.
func (d *directories) add(spec blob.Spec) error {
	for _, part := range spec.Parts {
		if err := d.add(part); err != nil {
			return err
		}
	}
	if spec.Scheme != blob.SchemeDir {
		return nil
	}
	info, err := os.Stat(spec.Dir)
	if err != nil {
		return nil // It is found out about when it is used.
	}
	for _, other := range *d {
		if os.SameFile(other.info, info) {
			return fmt.Errorf("locations %s and %s are the same directory", other.spec, spec)
		}
	}
	*d = append(*d, directory{spec, info})
	return nil
}
