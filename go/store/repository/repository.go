// Package repository creates clusters and unlocks them: it reads the key
// header at every location, tells which of them belong together, and opens one
// with the passphrase or the recovery key.
package repository

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/quorum"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/store/catalog"
	"powercloud.unidatum.com/go/store/rollback"
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
	// HeaderConflicting is another header of the cluster under the same root
	// key and with the same serial as the newest, as two who change it at once
	// leave them. Either may hold the secret that somebody relies on, so that
	// neither is ever changed.
	HeaderConflicting
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
	hedged    bool
}

// Read reads the key header at every location of a set. It fails with
// ErrNotInitialized when all answered and none has one.
func Read(ctx context.Context, set *quorum.Set) (*Headers, error) {
	h := &Headers{quorum: set.Quorum(), hedged: set.Hedged()}
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
		case errors.Is(reply.Err, blob.ErrDamaged):
			location.State, location.Err = HeaderDamaged, reply.Err
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
	// Catalog is what is known of manifests already, or nil.
	Catalog *catalog.Catalog
	// Guard compares what is read with the nodes' record of versions; nil where
	// the cluster has no consensus.
	Guard *rollback.Guard
	// Locations has every location, in the order given.
	Locations []*Location
	// Set gives access to all of them. A location with a foreign header, or
	// whose header could not be read, takes part in it only as one that
	// fails.
	Set *quorum.Set
}

// Unlock opens the cluster with a secret. Of several different headers, the
// one that most locations hold is tried first, whatever the order of the
// locations. keys.ErrWrongKey means that the secret opens none of them. It
// refuses to choose between two clusters that as many locations hold, if the
// secret opens both.
func (h *Headers) Unlock(secret Secret) (*Repository, error) {
	candidates := h.candidates()
	failure := keys.ErrWrongKey
	for i, candidate := range candidates {
		root, err := secret.unlock(candidate.header)
		if err == nil {
			if err := h.rival(candidate, candidates[i+1:], secret); err != nil {
				root.Wipe()
				return nil, err
			}
			chosen := newest(candidates, candidate.header.Cluster, root)
			h.classify(chosen, root)
			return h.repository(chosen, root)
		}
		if !errors.Is(err, keys.ErrWrongKey) {
			candidate.State, candidate.Err = HeaderDamaged, err
			failure = fmt.Errorf("%s: %w", candidate, err)
		}
	}
	return nil, failure
}

// newest returns the candidate with the newest header of a cluster under a root
// key; of several, the one with the most copies.
func newest(candidates []*Location, cluster keys.ClusterID, root *keys.Root) *Location {
	var chosen *Location
	for _, l := range candidates {
		if l.State != HeaderDamaged && l.header.Cluster == cluster && l.header.Verify(root) == nil &&
			(chosen == nil || l.header.Serial > chosen.header.Serial) {
			chosen = l
		}
	}
	return chosen
}

// rival returns an error if, of the candidates not yet tried, the secret opens one
// of another cluster that at least as many locations hold as that of the chosen
// one. Which of the two is meant can't be told then.
func (h *Headers) rival(chosen *Location, others []*Location, secret Secret) error {
	holders := map[keys.ClusterID]int{}
	for _, l := range h.locations {
		if l.header != nil {
			holders[l.header.Cluster]++
		}
	}
	for _, l := range others {
		if l.header.Cluster == chosen.header.Cluster || holders[l.header.Cluster] < holders[chosen.header.Cluster] {
			continue
		}
		if root, err := secret.unlock(l.header); err == nil {
			root.Wipe()
			return fmt.Errorf("%s and %s hold the key headers of two clusters, and the same secret opens both; "+
				"leave one of them out of --repo", chosen, l)
		}
	}
	return nil
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
	slices.SortFunc(first, func(a, b *Location) int {
		return cmp.Or(cmp.Compare(copies[string(b.raw)], copies[string(a.raw)]), bytes.Compare(a.raw, b.raw))
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
			if l.header.Serial == chosen.header.Serial {
				l.State = HeaderConflicting
			}
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
	if h.hedged {
		set.Hedge()
	}
	r.Set = set
	return r, nil
}

// Conflict returns an error when locations hold different headers of the same
// age. What is stored can be read and written all the same, as the root key is
// one; but which header to keep, somebody has to decide.
func (r *Repository) Conflict() error {
	for _, l := range r.Locations {
		if l.State != HeaderConflicting {
			continue
		}
		for _, current := range r.Locations {
			if current.State == HeaderCurrent {
				return fmt.Errorf("%s and %s hold different key headers of the same age; "+
					"delete the header at the one whose passphrase is to go, and run 'pcctl repair'", current, l)
			}
		}
	}
	return nil
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

// Holds reports whether the location's key header is still the one that was
// read before.
func (l *Location) Holds(header []byte) bool {
	return string(l.raw) == string(header)
}
