package registry

import (
	"bytes"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/pki/canonical"
)

// Merge returns what is in either of two registries of one cluster: of each setting
// the one that was changed last, of serials the higher. What was revoked in one is
// revoked. The order of registries that are merged makes no difference.
func Merge(a, b *Registry) (*Registry, error) {
	if a.Cluster != b.Cluster {
		return nil, fmt.Errorf("the registry is of cluster %s instead of %s", b.Cluster, a.Cluster)
	}
	merged := &Registry{
		Cluster:     a.Cluster,
		Serial:      max(a.Serial, b.Serial),
		Membership:  max(a.Membership, b.Membership),
		Revocations: max(a.Revocations, b.Revocations),
		Revoked:     a.Revoked.Merge(b.Revoked),
		Nodes:       append(append([]Node{}, a.Nodes...), b.Nodes...),
	}
	slices.SortStableFunc(merged.Nodes, compareIDs)
	kept := merged.Nodes[:0]
	for _, n := range merged.Nodes {
		last := len(kept) - 1
		if last < 0 || kept[last].ID != n.ID {
			kept = append(kept, n)
			continue
		}
		one, err := mergeNodes(kept[last], n)
		if err != nil {
			return nil, err
		}
		kept[last] = one
	}
	merged.Nodes = kept
	merged.forgetRevoked()
	return merged, nil
}

// mergeNodes merges two entries of one node. What doesn't change differs only if the
// node was enrolled twice, before it took either identity.
func mergeNodes(a, b Node) (Node, error) {
	merged := a
	first, err := compareFixed(a, b)
	if err != nil {
		return Node{}, err
	}
	if first < 0 {
		merged = b
	}
	for _, err := range []error{
		later(&merged.Address, a.Address, b.Address),
		later(&merged.Endpoint, a.Endpoint, b.Endpoint),
		later(&merged.PeerAPI, a.PeerAPI, b.PeerAPI),
		later(&merged.MeshKey, a.MeshKey, b.MeshKey),
		later(&merged.Attestation, a.Attestation, b.Attestation),
		later(&merged.Confirmed, a.Confirmed, b.Confirmed),
	} {
		if err != nil {
			return Node{}, err
		}
	}
	return merged, nil
}

// compareFixed orders entries of one node by what doesn't change: the one enrolled
// later is the larger.
func compareFixed(a, b Node) (int, error) {
	if c := a.Enrolled.Compare(b.Enrolled); c != 0 {
		return c, nil
	}
	fixed := func(n Node) Node { return Node{Name: n.Name, ID: n.ID, Key: n.Key, Volume: n.Volume} }
	return compareEncoded(fixed(a), fixed(b))
}

// later sets a setting to the one of two that was changed last.
func later[T comparable](to *Setting[T], a, b Setting[T]) error {
	c := a.Changed.Compare(b.Changed)
	if c == 0 {
		var err error
		if c, err = compareEncoded(a, b); err != nil {
			return err
		}
	}
	*to = a
	if c < 0 {
		*to = b
	}
	return nil
}

// compareEncoded orders two values in some way that is always the same.
func compareEncoded[T any](a, b T) (int, error) {
	one, err := canonical.Marshal(a)
	if err != nil {
		return 0, err
	}
	other, err := canonical.Marshal(b)
	if err != nil {
		return 0, err
	}
	return bytes.Compare(one, other), nil
}
