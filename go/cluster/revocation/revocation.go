// Package revocation has the cluster's revocation list: which certificates of the
// cluster's authority are no longer good.
//
// A list only ever grows. A node's ID on it revokes every certificate for the node's
// key, including any issued later; a moment on it revokes every admin's certificate
// issued before. It is the body of a signed document; docs/formats.md states every
// byte.
package revocation

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/canonical"
)

// ErrRevoked says that a certificate was revoked.
var ErrRevoked = errors.New("certificate was revoked")

// List is a revocation list. The zero value revokes nothing. Treat one as read-only:
// its methods return changed ones.
type List struct {
	// AdminsBefore is the moment before which no admin's certificate may have been
	// issued, in whole seconds and UTC; zero if admins' certificates were never
	// revoked.
	AdminsBefore time.Time `json:"admins_before,omitzero"`
	// Nodes are the IDs of removed nodes, in ascending order.
	Nodes []pki.NodeID `json:"nodes"`
}

// Encode returns the list as the body of a document.
func (l List) Encode() ([]byte, error) {
	l = l.Normalized()
	if err := l.Validate(); err != nil {
		return nil, err
	}
	return canonical.Marshal(l)
}

// Decode reads what Encode writes and nothing else. The caller bounds the size of
// body before, as package document does.
func Decode(body []byte) (List, error) {
	var l List
	if err := canonical.Unmarshal(body, &l); err != nil {
		return List{}, fmt.Errorf("reading the revocation list: %w", err)
	}
	if err := l.Validate(); err != nil {
		return List{}, err
	}
	return l, nil
}

// Normalized returns the list with a list of nodes where it has none, as it is
// written.
func (l List) Normalized() List {
	if l.Nodes == nil {
		l.Nodes = []pki.NodeID{}
	}
	return l
}

// Validate returns what is wrong with a list that was read as a part of something
// else.
func (l List) Validate() error {
	if l.Nodes == nil {
		return errors.New("the revocation list has no list of nodes")
	}
	for i := 1; i < len(l.Nodes); i++ {
		if compare(l.Nodes[i-1], l.Nodes[i]) >= 0 {
			return errors.New("the revocation list's nodes are not in ascending order")
		}
	}
	if at := l.AdminsBefore; !at.IsZero() && (at.Location() != time.UTC || !at.Equal(at.Truncate(time.Second))) {
		return errors.New("the revocation list's moment is not in UTC and whole seconds")
	}
	return nil
}

func compare(a, b pki.NodeID) int { return bytes.Compare(a[:], b[:]) }

// Empty reports whether nothing was ever revoked.
func (l List) Empty() bool { return l.AdminsBefore.IsZero() && len(l.Nodes) == 0 }

// Equal reports whether another list revokes the same.
func (l List) Equal(other List) bool {
	return l.AdminsBefore.Equal(other.AdminsBefore) && slices.Equal(l.Nodes, other.Nodes)
}

// Covers reports whether the list revokes all that another does.
func (l List) Covers(other List) bool {
	return !l.AdminsBefore.Before(other.AdminsBefore) && !slices.ContainsFunc(other.Nodes, func(id pki.NodeID) bool { return !l.HasNode(id) })
}

// HasNode reports whether a node was removed.
func (l List) HasNode(id pki.NodeID) bool {
	_, found := slices.BinarySearchFunc(l.Nodes, id, compare)
	return found
}

// WithNode returns the list with a node on it.
func (l List) WithNode(id pki.NodeID) List {
	return l.Merge(List{Nodes: []pki.NodeID{id}})
}

// WithAdmins returns the list with every admin's certificate on it that was issued
// before now. As certificates tell the time of their issue in seconds, that is the
// next full second. One that was issued by a clock ahead of this one, by at most
// pki.Allowance or else it isn't valid yet where the clock is right, may stay good:
// revoking once more, after that time, gets it too.
func (l List) WithAdmins(now time.Time) List {
	second := now.UTC().Truncate(time.Second)
	if second.Before(now) {
		second = second.Add(time.Second)
	}
	return l.Merge(List{AdminsBefore: second})
}

// IssueTime returns when a new admin's certificate is to be issued, so that the list
// doesn't revoke it: now, unless the clock of whoever revoked the earlier ones was
// ahead of this one.
func (l List) IssueTime(now time.Time) time.Time {
	if now.Before(l.AdminsBefore) {
		return l.AdminsBefore
	}
	return now
}

// Merge returns what either list revokes. The order of lists that are merged makes no
// difference.
func (l List) Merge(other List) List {
	merged := List{AdminsBefore: l.AdminsBefore, Nodes: slices.Concat(l.Nodes, other.Nodes)}
	if merged.AdminsBefore.Before(other.AdminsBefore) {
		merged.AdminsBefore = other.AdminsBefore
	}
	slices.SortFunc(merged.Nodes, compare)
	merged.Nodes = slices.Compact(merged.Nodes)
	return merged.Normalized()
}

// Check returns an error that wraps ErrRevoked if the list has the certificate by
// which somebody was identified.
func (l List) Check(bearer pki.Identity) error {
	switch {
	case bearer.Role == pki.RoleNode && l.HasNode(bearer.Node):
		return fmt.Errorf("the %w: node %s was removed from the cluster", ErrRevoked, bearer.Node)
	case bearer.Role == pki.RoleAdmin && bearer.Issued.Before(l.AdminsBefore):
		return fmt.Errorf("the %w: those of admins issued before %s were", ErrRevoked, l.AdminsBefore.Format(time.RFC3339))
	}
	return nil
}
