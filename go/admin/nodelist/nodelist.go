// Package nodelist keeps the nodes that this machine knows: nodes.json in pcctl's
// configuration directory.
//
// The list is what commands go by that have no more than the admin certificate. It
// holds the nodes of every cluster whose commands ran here, and no secret.
package nodelist

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/canonical"
)

const (
	file = "nodes.json"
	// maxFile is the size in bytes that the file doesn't exceed. It is enough for over
	// 10,000 nodes.
	maxFile = 4 << 20
)

// Node is a node that this machine knows.
type Node struct {
	// Cluster is the cluster that it is in.
	Cluster keys.ClusterID `json:"cluster"`
	// Name is its name, as nodename.Check allows it.
	Name string `json:"name"`
	// ID is its ID.
	ID pki.NodeID `json:"id"`
	// Address is where its API is reached.
	Address address.Address `json:"address"`
}

// List is a list of nodes, in the order of their clusters and names.
type List struct {
	Nodes []Node `json:"nodes"`
}

// Load reads the list in a configuration directory, which is empty if there is none.
func Load(dir configuration.Directory) (*List, error) {
	content, err := dir.Read(file, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &List{Nodes: []Node{}}, nil
	}
	if err != nil {
		return nil, err
	}
	l, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("%s in the configuration directory can't be read; delete it and run 'pcctl --repo ... node addr' for each node: %w", file, err)
	}
	return l, nil
}

// decode reads the file. It may have been edited, so white space counts for nothing,
// but members must be those that are written, in their order.
func decode(content []byte) (*List, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, content); err != nil {
		return nil, err
	}
	var l List
	if err := canonical.Unmarshal(compact.Bytes(), &l); err != nil {
		return nil, err
	}
	if l.Nodes == nil {
		return nil, errors.New("it has no list of nodes")
	}
	if err := l.validate(); err != nil {
		return nil, err
	}
	return &l, nil
}

// encode returns the file, for people to read as well.
func (l *List) encode() ([]byte, error) {
	if err := l.validate(); err != nil {
		return nil, err
	}
	text, err := canonical.Marshal(l)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	if b.Len() > maxFile {
		return nil, fmt.Errorf("a list of %d nodes is larger than %d bytes", len(l.Nodes), maxFile)
	}
	return b.Bytes(), nil
}

func (l *List) validate() error {
	ids := map[Node]bool{}
	for i, n := range l.Nodes {
		if err := nodename.Check(n.Name); err != nil {
			return err
		}
		if n.Address.IsZero() {
			return fmt.Errorf("node %s has no address", n.Name)
		}
		if i > 0 && compare(l.Nodes[i-1], n) >= 0 {
			return fmt.Errorf("node %s is there twice, or not in the order of the names", n.Name)
		}
		id := Node{Cluster: n.Cluster, ID: n.ID}
		if ids[id] {
			return fmt.Errorf("node %s has the ID of another", n.Name)
		}
		ids[id] = true
	}
	return nil
}

func compare(a, b Node) int {
	return cmp.Or(bytes.Compare(a.Cluster[:], b.Cluster[:]), cmp.Compare(a.Name, b.Name))
}

// Update changes the list in a configuration directory, next to nobody else who does.
// If change fails, nothing is written, and Update returns that error as it is.
func Update(dir configuration.Directory, change func(*List) error) error {
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	l, err := Load(dir)
	if err != nil {
		return err
	}
	if err := change(l); err != nil {
		return err
	}
	content, err := l.encode()
	if err != nil {
		return err
	}
	if err := dir.Write(file, content); err != nil {
		return fmt.Errorf("writing this machine's list of nodes: %w", err)
	}
	return nil
}

// Of returns a cluster's nodes, in the order of their names.
func (l *List) Of(cluster keys.ClusterID) []Node {
	var nodes []Node
	for _, n := range l.Nodes {
		if n.Cluster == cluster {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// Find returns the node of a cluster that has a name.
func (l *List) Find(cluster keys.ClusterID, name string) (Node, error) {
	for _, n := range l.Of(cluster) {
		if n.Name == name {
			return n, nil
		}
	}
	return Node{}, fmt.Errorf("unknown node %q (see 'pcctl node ls')", name)
}

// Put adds a node, in the place of those of its cluster that have its name or its ID.
func (l *List) Put(node Node) {
	l.Nodes = slices.DeleteFunc(l.Nodes, func(n Node) bool {
		return n.Cluster == node.Cluster && (n.Name == node.Name || n.ID == node.ID)
	})
	l.Nodes = append(l.Nodes, node)
	slices.SortFunc(l.Nodes, compare)
}

// Remove removes the node of a cluster that has an ID, if it is there.
func (l *List) Remove(cluster keys.ClusterID, id pki.NodeID) {
	l.Nodes = slices.DeleteFunc(l.Nodes, func(n Node) bool { return n.Cluster == cluster && n.ID == id })
}
