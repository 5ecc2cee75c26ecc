package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"powercloud.unidatum.com/go/keys"
)

// ObjectName is the name of the registry among the cluster's objects.
const ObjectName = ".powercloud/registry"

// ErrContended says that others changed the registry again and again while it was
// being written.
var ErrContended = errors.New("others keep changing the cluster's registry of nodes; try again")

// keepTries is how often the registry is written before that is ErrContended.
const keepTries = 5

// Objects is where the registry is kept: the cluster's store, as far as it is needed
// for that.
type Objects interface {
	// Read returns the newest version of an object of at most limit bytes. The error
	// wraps fs.ErrNotExist only if it is certain that there is none.
	Read(ctx context.Context, name string, limit int64) ([]byte, error)
	// Write stores an object durably, in the place of the one there is.
	Write(ctx context.Context, name string, content []byte) error
}

// Load returns the cluster's registry, which is empty if there is none yet.
func Load(ctx context.Context, objects Objects, cluster keys.ClusterID) (*Registry, error) {
	content, err := objects.Read(ctx, ObjectName, MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return New(cluster), nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the cluster's registry of nodes: %w", err)
	}
	r, err := Decode(content)
	if err != nil {
		return nil, err
	}
	if r.Cluster != cluster {
		return nil, fmt.Errorf("%w: it is of cluster %s", ErrRegistry, r.Cluster)
	}
	return r, nil
}

// Update changes the cluster's registry: it is read, changed, and kept. It returns
// what there is then, which may have others' changes in it as well. If change fails,
// nothing is written, and Update returns that error as it is.
func Update(ctx context.Context, objects Objects, cluster keys.ClusterID, change func(*Registry) error) (*Registry, error) {
	r, err := Load(ctx, objects, cluster)
	if err != nil {
		return nil, err
	}
	if err := change(r); err != nil {
		return nil, err
	}
	return Keep(ctx, objects, r)
}

// Keep makes sure that all that is in a registry is in the one that is kept, and
// returns that. It writes, reads again and merges, until nothing is missing.
//
// If another pcctl has read the registry before that, and writes it after, what was
// kept is lost, as the store can't be told to write only over what was read. The
// time for that is short, as Update reads right before it writes. Whoever goes on
// with other work calls Keep once more at its end, when such a write is over too.
func Keep(ctx context.Context, objects Objects, r *Registry) (*Registry, error) {
	for try := range keepTries + 1 {
		there, err := Load(ctx, objects, r.Cluster)
		if err != nil {
			return nil, err
		}
		merged, err := Merge(there, r)
		if err != nil {
			return nil, err
		}
		missing, err := differ(merged, there)
		if err != nil || !missing {
			return merged, err
		}
		if try == keepTries {
			break
		}
		merged.Serial++
		content, err := merged.Encode()
		if err != nil {
			return nil, err
		}
		if err := objects.Write(ctx, ObjectName, content); err != nil {
			return nil, fmt.Errorf("writing the cluster's registry of nodes: %w", err)
		}
		r = merged
	}
	return nil, ErrContended
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
