package registry

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"powercloud.unidatum.com/go/keys"
)

// Load returns the cluster's registry, which is empty if there is none yet.
func Load(ctx context.Context, objects Objects, cluster keys.ClusterID) (*Registry, error) {
	merged, _, err := LoadEach(ctx, objects, cluster)
	return merged, err
}

// LoadEach is Load that also returns, in no order, what was in each object.
func LoadEach(ctx context.Context, objects Objects, cluster keys.ClusterID) (merged *Registry, each []*Registry, err error) {
	s, err := find(ctx, objects, cluster)
	if err != nil {
		return nil, nil, err
	}
	return s.merged, slices.Collect(maps.Values(s.found)), nil
}

// Update changes the cluster's registry: it is read, changed, and kept. It returns
// what is kept, with others' changes up to then. If change fails, nothing is written,
// and Update returns that error as it is.
//
// Once it has returned nil, the change is in whatever is loaded afterwards, whoever
// else writes at the same moment. What fails or is cut off may be in it as well.
func Update(ctx context.Context, objects Objects, cluster keys.ClusterID, change func(*Registry) error) (*Registry, error) {
	s, err := find(ctx, objects, cluster)
	if err != nil {
		return nil, err
	}
	changed, err := Merge(s.merged, s.merged) // To be changed itself.
	if err != nil {
		return nil, err
	}
	if err := change(changed); err != nil {
		return nil, err
	}
	return s.keep(ctx, objects, changed)
}

// Keep makes sure that all that is in a registry is in the one that is kept, and
// returns that. It writes only if something is missing, or if what is there may be lost
// yet.
func Keep(ctx context.Context, objects Objects, r *Registry) (*Registry, error) {
	s, err := find(ctx, objects, r.Cluster)
	if err != nil {
		return nil, err
	}
	return s.keep(ctx, objects, r)
}

// keep puts what was found, and what is in r, into one object, and removes those that
// it was found in.
//
// Objects are never written over. So whoever else does the same leaves another object,
// with a change of their own, which is found beside this one.
func (s *state) keep(ctx context.Context, objects Objects, r *Registry) (*Registry, error) {
	next, err := Merge(s.merged, r)
	if err != nil {
		return nil, err
	}
	if missing, err := differ(next, s.merged); err != nil || !missing && s.settled() {
		return next, err
	}
	if next.shared(r) || slices.ContainsFunc(slices.Collect(maps.Values(s.found)), next.shared) {
		next.Revocations++
	}
	next.Serial++
	content, err := next.Encode()
	if err != nil {
		return nil, err
	}
	name, err := newName()
	if err != nil {
		return nil, err
	}
	if err := objects.Write(ctx, name, content); err != nil {
		return nil, fmt.Errorf("writing the cluster's registry of nodes: %w", err)
	}
	s.fold(ctx, objects)
	return next, nil
}

// fold removes the objects whose content has been written elsewhere. What stays, as
// removing it fails or never comes to an end, changes nothing: it is merged again, and
// removed with the next.
func (s *state) fold(ctx context.Context, objects Objects) {
	if s.found[OldName] != nil {
		_ = objects.Remove(ctx, OldName)
	}
	for _, name := range s.listed {
		_ = objects.Remove(ctx, name)
	}
}

// settled reports whether all that was found is certain to be found again. An object
// whose writing has failed may be: of several, any can be that. The one that is there
// alone isn't, as what was there before it is removed last; unless there was nothing
// before it.
func (s *state) settled() bool {
	switch {
	case s.found[OldName] != nil || len(s.listed) > 1:
		return false
	case len(s.listed) == 1:
		return s.merged.Serial > 1
	}
	return true
}

// shared reports whether another has another revocation list under the same serial, as
// two admins may write at the same moment. One that was merged of both must have a
// serial of its own: either may have been signed.
func (r *Registry) shared(other *Registry) bool {
	return r.Revocations == other.Revocations && !r.Revoked.Equal(other.Revoked)
}

// differ reports whether two registries of one cluster differ in more than how often
// they were written.
func differ(a, b *Registry) (bool, error) {
	x, y := *a, *b
	x.Serial, y.Serial = 0, 0
	one, err := x.Encode()
	if err != nil {
		return false, err
	}
	other, err := y.Encode()
	if err != nil {
		return false, err
	}
	return !bytes.Equal(one, other), nil
}
