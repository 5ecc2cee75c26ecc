// Package membership has the cluster's membership list: its nodes, and what each of
// them has to know of the others to reach them.
//
// A list is made of the registry, which nodes never see, and is the body of a signed
// document; docs/formats.md states every byte. A node is known by its ID, which
// follows from its key: who shows a certificate for a node's key is that node, and the
// list needn't have the key. Nothing else in a list is an identity. Two nodes have one
// name if two admins enrolled them at the same moment, and the list with both is
// published all the same; a node that says that another's mesh key is its own has it
// listed. So neither is unique.
package membership

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/canonical"
)

// Node is what the list has of a node.
type Node struct {
	// Name is the node's name, as nodename.Check allows it.
	Name string `json:"name"`
	// ID is the node's ID.
	ID pki.NodeID `json:"id"`
	// MeshKey is the public key of its WireGuard; none if it isn't known yet.
	MeshKey meshkey.Public `json:"mesh_key,omitzero"`
	// Endpoint is where peers reach its WireGuard; none if they can't reach it first.
	Endpoint address.Address `json:"endpoint,omitzero"`
	// API is where peers reach its API outside of the mesh; none if they can't.
	API address.Address `json:"api,omitzero"`
}

// List is a membership list. The zero value has no nodes. Treat one as read-only.
type List struct {
	// Nodes are the nodes, in ascending order of their IDs.
	Nodes []Node `json:"nodes"`
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
		return List{}, fmt.Errorf("reading the membership list: %w", err)
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
		l.Nodes = []Node{}
	}
	return l
}

// Validate returns what is wrong with a list.
func (l List) Validate() error {
	if l.Nodes == nil {
		return errors.New("the membership list has no list of nodes")
	}
	for i, n := range l.Nodes {
		if err := nodename.Check(n.Name); err != nil {
			return fmt.Errorf("the membership list: %w", err)
		}
		if i > 0 && compare(l.Nodes[i-1].ID, n.ID) >= 0 {
			return errors.New("the membership list's nodes are not in ascending order")
		}
	}
	return nil
}

func compare(a, b pki.NodeID) int { return bytes.Compare(a[:], b[:]) }

// Find returns the node of an ID, and whether the list has it.
func (l List) Find(id pki.NodeID) (Node, bool) {
	i, found := slices.BinarySearchFunc(l.Nodes, id, func(n Node, id pki.NodeID) int { return compare(n.ID, id) })
	if !found {
		return Node{}, false
	}
	return l.Nodes[i], true
}

// ByName returns the nodes of a name, in ascending order of their IDs: none, one, or
// those that were enrolled under it at the same moment.
func (l List) ByName(name string) []Node {
	var nodes []Node
	for _, n := range l.Nodes {
		if n.Name == name {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
