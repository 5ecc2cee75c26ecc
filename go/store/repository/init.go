package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
)

// Init creates a cluster at the locations of a set: it writes a new key header
// to every one. It fails with ErrInitialized when one exists, and also when a
// location can't tell. If a location refuses the header, it is removed from
// the others again. It never replaces a header: of two that create a cluster at
// the same locations at once, at most one succeeds.
func Init(ctx context.Context, set *quorum.Set, passphrase []byte, random io.Reader) (keys.ClusterID, keys.RecoveryKey, error) {
	if err := CheckNew(ctx, set); err != nil {
		return keys.ClusterID{}, keys.RecoveryKey{}, err
	}
	header, root, recovery, err := keys.Create(random, passphrase)
	if err != nil {
		return keys.ClusterID{}, keys.RecoveryKey{}, err
	}
	root.Wipe()
	// The passphrase may have taken long to type and to stretch.
	if err := CheckNew(ctx, set); err != nil {
		return keys.ClusterID{}, keys.RecoveryKey{}, err
	}
	if err := writeHeaders(ctx, set, header.Marshal()); err != nil {
		return keys.ClusterID{}, keys.RecoveryKey{}, err
	}
	return header.Cluster, recovery, nil
}

// CheckNew returns nil when every location answers and none holds anything of
// a cluster.
func CheckNew(ctx context.Context, set *quorum.Set) error {
	var initialized error
	for _, reply := range set.GetEach(ctx, blob.Header(), keys.MaxHeader) {
		switch {
		case reply.Err == nil || blob.Unusable(reply.Err):
			initialized = fmt.Errorf("%w (%s holds a key header)", ErrInitialized, reply.Location)
		case !errors.Is(reply.Err, blob.ErrNotFound):
			return fmt.Errorf("checking for an existing cluster: %s: %w", reply.Location, reply.Err)
		}
	}
	if initialized != nil {
		return initialized
	}
	for _, location := range set.Locations() {
		if err := blob.ProbeAll(ctx, location); err != nil {
			return fmt.Errorf("checking for an existing cluster: %s: %w", location, err)
		}
		for _, kind := range []blob.Kind{blob.KindManifest, blob.KindChunk} {
			err := location.List(ctx, kind, func(blob.Info) error { return errNotEmpty })
			if errors.Is(err, errNotEmpty) {
				return fmt.Errorf("%s holds the data of a cluster whose key header is missing; "+
					"restore the header from another location, or empty this one", location)
			}
			if err != nil {
				return fmt.Errorf("checking for an existing cluster: %s: %w", location, err)
			}
		}
	}
	return nil
}

var errNotEmpty = errors.New("location is not empty")

// writeHeaders stores the header at every location, or at none.
func writeHeaders(ctx context.Context, set *quorum.Set, header []byte) error {
	// In an order that doesn't depend on who gives the list: of two at once,
	// one then meets the other at the first location, and not both at the
	// other's first.
	locations := set.Locations()
	slices.SortFunc(locations, func(a, b blob.Location) int { return cmp.Compare(a.String(), b.String()) })
	var written []blob.Location
	err := func() error {
		for _, location := range locations {
			err := blob.Create(ctx, location, blob.Header(), header)
			if errors.Is(err, blob.ErrExists) {
				return fmt.Errorf("%w (another init has just written a key header to %s)", ErrInitialized, location)
			}
			written = append(written, location)
			if err != nil {
				return fmt.Errorf("writing the key header to %s: %w", location, err)
			}
			if err := location.Flush(ctx); err != nil {
				return fmt.Errorf("writing the key header to %s: %w", location, err)
			}
		}
		for _, reply := range set.GetEach(ctx, blob.Header(), keys.MaxHeader) {
			if reply.Err != nil {
				return fmt.Errorf("reading the key header back from %s: %w", reply.Location, reply.Err)
			}
			if string(reply.Data) != string(header) {
				return fmt.Errorf("%w (another init has just replaced the key header at %s)", ErrInitialized, reply.Location)
			}
		}
		return nil
	}()
	if err == nil {
		return nil
	}
	// Undone even when the command was interrupted.
	ctx = context.WithoutCancel(ctx)
	for _, location := range written {
		stored, getErr := location.Get(ctx, blob.Header(), nil, keys.MaxHeader)
		if getErr != nil || string(stored) != string(header) {
			continue
		}
		if undoErr := location.Delete(ctx, blob.Header()); undoErr != nil {
			return fmt.Errorf("%w; and the new key header could not be removed from %s again: %w", err, location, undoErr)
		}
	}
	return err
}
