package registry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"

	"powercloud.unidatum.com/go/keys"
)

const (
	// Folder begins the names of the objects that the registry is kept in.
	Folder = ".powercloud/registry/"
	// OldName is the one object that was the whole registry once. Where it is still
	// there, it counts as one of them.
	OldName = ".powercloud/registry"
)

const (
	// loadTries is how often the objects are listed while others replace them.
	loadTries = 32
	// maxObjects is how many objects the registry is read from, and maxTotal how many
	// bytes they may have together. There are more than one only where admins write at
	// the same moment, or were cut off.
	maxObjects = 1024
	maxTotal   = 16 * MaxSize
)

// ErrContended says that others changed the registry again and again while it was
// being read.
var ErrContended = errors.New("others keep changing the cluster's registry of nodes; try again")

// Objects is where the registry is kept: the cluster's store, as far as it is needed
// for that.
type Objects interface {
	// List returns the names of the objects in a folder, in any order. There is a
	// moment during the call at which there were no others.
	List(ctx context.Context, folder string) ([]string, error)
	// Read returns the newest version of an object of at most limit bytes. The error
	// wraps fs.ErrNotExist only if it is certain that there is none.
	Read(ctx context.Context, name string, limit int64) ([]byte, error)
	// Write stores an object durably.
	Write(ctx context.Context, name string, content []byte) error
	// Remove removes an object.
	Remove(ctx context.Context, name string) error
}

// newName returns the name of an object that there never was.
func newName() (string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return "", fmt.Errorf("choose a name for the cluster's registry of nodes: %w", err)
	}
	return Folder + hex.EncodeToString(random[:]), nil
}

// state is a registry as it was found.
type state struct {
	// found has what was in each object.
	found map[string]*Registry
	// size is how many bytes those have.
	size int
	// listed are the objects that were there in the end. What else was found is in one
	// of them too.
	listed []string
	// merged is all of it together.
	merged *Registry
}

// find reads a registry.
func find(ctx context.Context, objects Objects, cluster keys.ClusterID) (*state, error) {
	s := &state{found: map[string]*Registry{}, merged: New(cluster)}
	// The old object first: if it is gone, what took its place is listed.
	if _, err := s.read(ctx, objects, OldName); err != nil {
		return nil, err
	}
	for range loadTries {
		names, err := objects.List(ctx, Folder)
		if err != nil {
			return nil, fmt.Errorf("listing the cluster's registry of nodes: %w", err)
		}
		if len(names) > maxObjects {
			return nil, fmt.Errorf("the cluster's registry of nodes is in %d objects, more than the %d that are read; 'pcctl check' may tell why earlier ones can't be removed",
				len(names), maxObjects)
		}
		gone, err := s.readAll(ctx, objects, names)
		if err != nil {
			return nil, err
		}
		if !gone {
			s.listed = names
			return s, nil
		}
	}
	return nil, ErrContended
}

// readAll reads those of some objects that were not read yet. gone reports whether one
// isn't there any more: what took its place need not be among the others.
func (s *state) readAll(ctx context.Context, objects Objects, names []string) (gone bool, err error) {
	for _, name := range names {
		there, err := s.read(ctx, objects, name)
		if err != nil {
			return false, err
		}
		gone = gone || !there
	}
	return gone, nil
}

// read reads an object, unless it was read before: it never changes. there reports
// whether there is one.
func (s *state) read(ctx context.Context, objects Objects, name string) (there bool, err error) {
	if s.found[name] != nil {
		return true, nil
	}
	content, err := objects.Read(ctx, name, MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading the cluster's registry of nodes: %w", err)
	}
	if s.size += len(content); s.size > maxTotal {
		return false, fmt.Errorf("the objects of the cluster's registry of nodes have more than %d bytes together; 'pcctl check' may tell why earlier ones can't be removed", maxTotal)
	}
	r, err := Decode(content)
	if err == nil && r.Cluster != s.merged.Cluster {
		err = fmt.Errorf("%w: it is of cluster %s", ErrRegistry, r.Cluster)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	merged, err := Merge(s.merged, r)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	s.found[name], s.merged = r, merged
	return true, nil
}
