// Package registry has the cluster's registry: what its admins know of its nodes.
//
// The registry is kept in the cluster's encrypted store, which only those who can
// unlock the cluster can read or write. Nodes never see it: what they need of it is
// published to them in signed documents. What those were numbered is in it too, and
// what was revoked.
//
// Two admins may change it at the same moment, and a store can't be told to write only
// over what was read. So nothing is ever written over: the registry is a set of objects
// that never change. Whoever changes it reads all of them, and writes what they have
// together, with the change, into a new one. Only when that is durable, the objects that
// were read are removed. Two who do so at once leave two objects; what is loaded is
// both, merged, and the next who writes makes one of them.
//
// That takes registries that can be merged: every setting has the time of its change,
// what was removed or revoked stays so, and merging the same things in any order, or
// once more, gives the same. So an object that was removed and comes back, as a location
// has it still, changes nothing.
//
// docs/formats.md states every byte.
package registry

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/canonical"
)

const (
	magic = "#powercloud-registry v1\n"

	// MaxSize is the largest size of a registry in bytes. It is enough for over 4000
	// nodes.
	MaxSize = 4 << 20
)

var (
	// ErrRegistry says that bytes are not a registry. The error that wraps it says
	// why.
	ErrRegistry = errors.New("bad registry of nodes")
	// ErrUnknown says that the registry has no such node.
	ErrUnknown = errors.New("the cluster's registry has no such node")
)

// Registry is what a cluster's admins know of its nodes.
type Registry struct {
	// Cluster is the cluster.
	Cluster keys.ClusterID `json:"cluster"`
	// Serial is how often the registry was written, not counting what was written at
	// the same moment; 0 if it never was.
	Serial uint64 `json:"serial"`
	// Membership and Revocations are the serials of the membership and revocation
	// lists that were signed last; 0 if none was.
	Membership  uint64 `json:"membership"`
	Revocations uint64 `json:"revocations"`
	// Revoked is what was revoked, removed nodes included.
	Revoked revocation.List `json:"revoked"`
	// Nodes are the nodes, none of them revoked, in ascending order of their IDs.
	Nodes []Node `json:"nodes"`
}

// New returns the registry of a cluster without nodes.
func New(cluster keys.ClusterID) *Registry {
	return &Registry{Cluster: cluster, Revoked: revocation.List{}.Normalized(), Nodes: []Node{}}
}

// Encode returns the registry's bytes, which Decode reads.
func (r *Registry) Encode() ([]byte, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	text, err := canonical.Marshal(r)
	if err != nil {
		return nil, err
	}
	if len(magic)+len(text) > MaxSize {
		return nil, fmt.Errorf("the registry of %d nodes is larger than %d bytes", len(r.Nodes), MaxSize)
	}
	return append([]byte(magic), text...), nil
}

// Decode reads what Encode writes and nothing else. Other bytes give an error that
// wraps ErrRegistry.
func Decode(b []byte) (*Registry, error) {
	if len(b) > MaxSize {
		return nil, fmt.Errorf("%w: it is larger than %d bytes", ErrRegistry, MaxSize)
	}
	text, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok {
		return nil, fmt.Errorf("%w: it doesn't begin as one of version 1; use the pcctl that wrote it", ErrRegistry)
	}
	var r Registry
	if err := canonical.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRegistry, err)
	}
	return &r, nil
}

func (r *Registry) validate() error {
	if r.Nodes == nil {
		return errors.New("it has no list of nodes")
	}
	if err := r.Revoked.Validate(); err != nil {
		return err
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		switch err := n.validate(); {
		case err != nil:
			return err
		case i > 0 && compareIDs(r.Nodes[i-1], *n) >= 0:
			return errors.New("its nodes are not in ascending order")
		case r.Revoked.HasNode(n.ID):
			return fmt.Errorf("it has node %s, which was removed", n.Name)
		}
	}
	return nil
}

func compareIDs(a, b Node) int { return bytes.Compare(a.ID[:], b.ID[:]) }

// Names returns the nodes in the order of their names, as they are listed.
func (r *Registry) Names() []Node {
	nodes := slices.Clone(r.Nodes)
	slices.SortStableFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	return nodes
}

// Find returns the node of a name, to be read or changed in its place. A node's ID
// stands for its name: it takes that to tell apart two nodes of one name, which two
// admins may have enrolled at the same moment. Without such a node the error wraps
// ErrUnknown.
func (r *Registry) Find(name string) (*Node, error) {
	var found []*Node
	for i := range r.Nodes {
		if n := &r.Nodes[i]; n.Name == name || n.ID.String() == name {
			found = append(found, n)
		}
	}
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("%w: %q", ErrUnknown, name)
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, n := range found {
		ids = append(ids, n.ID.String())
	}
	return nil, fmt.Errorf("%d nodes are named %q: give the ID of one instead, %s", len(found), name, strings.Join(ids, " or "))
}

// Add adds a node, unless there is one of its name, or it is or was there itself.
func (r *Registry) Add(node Node) error {
	if r.Revoked.HasNode(node.ID) {
		return fmt.Errorf("node %s was removed from the cluster; restart it, and enroll it with the new code that its console shows", node.ID)
	}
	for i := range r.Nodes {
		switch n := &r.Nodes[i]; {
		case n.Name == node.Name:
			return fmt.Errorf("a node named %q is already enrolled", node.Name)
		case n.ID == node.ID:
			return fmt.Errorf("node %s is already enrolled, as %q", node.ID, n.Name)
		}
	}
	r.Nodes = append(r.Nodes, node)
	slices.SortFunc(r.Nodes, compareIDs)
	return nil
}

// Remove forgets a node and revokes it.
func (r *Registry) Remove(id pki.NodeID) {
	r.Revoke(revocation.List{}.WithNode(id))
}

// Revoke revokes all that a list does, and forgets the nodes on it. It reports whether
// the registry lacked any of that.
func (r *Registry) Revoke(list revocation.List) bool {
	if r.Revoked.Covers(list) {
		return false
	}
	r.Revoked = r.Revoked.Merge(list)
	r.forgetRevoked()
	return true
}

func (r *Registry) forgetRevoked() {
	r.Nodes = slices.DeleteFunc(r.Nodes, func(n Node) bool { return r.Revoked.HasNode(n.ID) })
}
