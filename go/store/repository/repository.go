// Package repository creates clusters and unlocks them: it reads the key
// header at every location, tells which of them belong together, and opens one
// with the passphrase or the recovery key.
package repository

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
)

var (
	// ErrNotInitialized means that no location holds a key header.
	ErrNotInitialized = errors.New("repository not initialized; run 'pcctl init'")
	// ErrInitialized means that a location holds a key header already.
	ErrInitialized = errors.New("repository already initialized")
)

// HeaderState says what a location holds as its key header.
type HeaderState int

const (
	// HeaderCurrent is the cluster's newest header.
	HeaderCurrent HeaderState = iota
	// HeaderMissing is no header.
	HeaderMissing
	// HeaderStale is an older header of the cluster.
	HeaderStale
	// HeaderDamaged is one that fails its checks.
	HeaderDamaged
	// HeaderForeign is another cluster's header, one of this cluster under
	// another root key, or one in a newer format. It is never changed.
	HeaderForeign
	// HeaderUnreachable is a location that could not tell.
	HeaderUnreachable
)

// Location is one location and the state of its key header.
type Location struct {
	blob.Location
	State HeaderState
	// Err says why, for HeaderDamaged, HeaderUnreachable, and a HeaderForeign
	// in a newer format.
	Err error

	raw    []byte
	header *keys.Header
}

// Headers is what the locations hold as their key headers, read but not yet
// unlocked.
type Headers struct {
	locations []*Location
	quorum    int
}

// Read reads the key header at every location of a set. It fails with
// ErrNotInitialized when all answered and none has one.
func Read(ctx context.Context, set *quorum.Set) (*Headers, error) {
	h := &Headers{quorum: set.Quorum()}
	for _, reply := range set.GetEach(ctx, blob.Header(), keys.MaxHeader) {
		location := &Location{Location: reply.Location, raw: reply.Data}
		h.locations = append(h.locations, location)
		switch {
		case errors.Is(reply.Err, blob.ErrNotFound):
			location.State = HeaderMissing
			continue
		case errors.Is(reply.Err, blob.ErrTooLarge):
			location.State, location.Err = HeaderDamaged, keys.ErrHeader
			continue
		case reply.Err != nil:
			location.State, location.Err = HeaderUnreachable, reply.Err
			continue
		}
		header, err := keys.ParseHeader(reply.Data)
		if err != nil {
			location.State, location.Err = HeaderDamaged, err
			var version *keys.VersionError
			if errors.As(err, &version) && version.Newer() {
				location.State = HeaderForeign
			}
			continue
		}
		location.header = header
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return h, h.usable()
}

// usable returns nil when some location has a header to unlock.
func (h *Headers) usable() error {
	var why []string
	for _, l := range h.locations {
		if l.header != nil {
			return nil
		}
		if l.Err != nil {
			why = append(why, fmt.Sprintf("%s: %v", l, l.Err))
		}
	}
	if len(why) == 0 {
		return ErrNotInitialized
	}
	return fmt.Errorf("no reachable location has a usable key header; bring back one that has (%s)", strings.Join(why, "; "))
}

// Secret opens a cluster: a passphrase, or a recovery key if there is one.
type Secret struct {
	Passphrase []byte
	Recovery   *keys.RecoveryKey
}

// unlock opens a header with the secret.
func (s Secret) unlock(header *keys.Header) (*keys.Root, error) {
	if s.Recovery != nil {
		return header.UnlockRecovery(*s.Recovery)
	}
	return header.UnlockPassphrase(s.Passphrase)
}

// Repository is an unlocked cluster and its locations.
type Repository struct {
	// Root is the cluster's root key.
	Root *keys.Root
	// Cluster is the cluster's ID.
	Cluster keys.ClusterID
	// Header is the newest key header, as it is stored.
	Header []byte
	// Locations has every location, in the order given.
	Locations []*Location
	// Set gives access to all of them. A location with a foreign header, or
	// whose header could not be read, takes part in it only as one that
	// fails.
	Set *quorum.Set
}

// Unlock opens the cluster with a secret. Of several different headers, the
// one that most locations hold is tried first. keys.ErrWrongKey means that the
// secret opens none of them.
func (h *Headers) Unlock(secret Secret) (*Repository, error) {
	candidates := h.candidates()
	var root *keys.Root
	var chosen *Location
	failure := keys.ErrWrongKey
	for _, candidate := range candidates {
		opened, err := secret.unlock(candidate.header)
		if err == nil {
			root, chosen = opened, candidate
			break
		}
		if !errors.Is(err, keys.ErrWrongKey) {
			candidate.State, candidate.Err = HeaderDamaged, err
			failure = fmt.Errorf("%s: %w", candidate, err)
		}
	}
	if root == nil {
		return nil, failure
	}
	for _, l := range candidates {
		if l.State == HeaderCurrent && l.header.Cluster == chosen.header.Cluster &&
			l.header.Serial > chosen.header.Serial && l.header.Verify(root) == nil {
			chosen = l
		}
	}
	h.classify(chosen, root)
	return h.repository(chosen, root)
}

// candidates returns one location for each distinct header, those with the
// most copies first.
func (h *Headers) candidates() []*Location {
	copies := map[string]int{}
	var first []*Location
	for _, l := range h.locations {
		if l.header == nil {
			continue
		}
		if copies[string(l.raw)] == 0 {
			first = append(first, l)
		}
		copies[string(l.raw)]++
	}
	slices.SortStableFunc(first, func(a, b *Location) int {
		return cmp.Compare(copies[string(b.raw)], copies[string(a.raw)])
	})
	return first
}

// classify sets the state of every location, once the cluster's own newest
// header is known.
func (h *Headers) classify(chosen *Location, root *keys.Root) {
	for _, l := range h.locations {
		switch {
		case l.header == nil || l.State == HeaderDamaged:
		case string(l.raw) == string(chosen.raw):
			l.State = HeaderCurrent
		case l.header.Cluster == chosen.header.Cluster && l.header.Verify(root) == nil:
			l.State = HeaderStale
		default:
			l.State = HeaderForeign
		}
	}
}

// repository puts the unlocked cluster together.
func (h *Headers) repository(chosen *Location, root *keys.Root) (*Repository, error) {
	r := &Repository{Root: root, Cluster: chosen.header.Cluster, Header: chosen.raw, Locations: h.locations}
	members := make([]blob.Location, len(h.locations))
	for i, l := range h.locations {
		members[i] = l.Location
		if l.State == HeaderForeign || l.State == HeaderUnreachable {
			members[i] = refused{l.Location, cmp.Or(l.Err, ErrForeign)}
		}
	}
	set, err := quorum.New(members, h.quorum)
	if err != nil {
		return nil, err
	}
	r.Set = set
	return r, nil
}

// Mixed returns an error when a location holds this cluster's header under
// another root key, as an interrupted key rotation leaves it. Nothing may be
// written then but by the rotation itself.
func (r *Repository) Mixed() error {
	for _, l := range r.Locations {
		if l.State == HeaderForeign && l.header != nil && l.header.Cluster == r.Cluster {
			return fmt.Errorf("storage locations hold different key headers, left by an interrupted key rotation (%s differs)", l)
		}
	}
	return nil
}

// Init creates a cluster at the locations of a set: it writes a new key header
// to every one. It fails with ErrInitialized when one exists, and also when a
// location can't tell. If a location refuses the header, it is removed from
// the others again.
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
		case reply.Err == nil || errors.Is(reply.Err, blob.ErrTooLarge):
			initialized = fmt.Errorf("%w (%s holds a key header)", ErrInitialized, reply.Location)
		case !errors.Is(reply.Err, blob.ErrNotFound):
			return fmt.Errorf("checking for an existing cluster: %s: %w", reply.Location, reply.Err)
		}
	}
	if initialized != nil {
		return initialized
	}
	for _, location := range set.Locations() {
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
	var written []blob.Location
	err := func() error {
		for _, location := range set.Locations() {
			written = append(written, location)
			if err := location.Put(ctx, blob.Header(), header); err != nil {
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
				return fmt.Errorf("%s: another key header was written at the same time", reply.Location)
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

// Holds reports whether the location's key header is still the one that was
// read before.
func (l *Location) Holds(header []byte) bool {
	return string(l.raw) == string(header)
}
