package registry

import (
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/membership"
)

// Members returns the membership list that nodes get of the registry. A node isn't on it
// before it is known to have got its identity: its peers would look for one that may
// never come.
func (r *Registry) Members() membership.List {
	var l membership.List
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if !n.Confirmed.Value {
			continue
		}
		l.Nodes = append(l.Nodes, membership.Node{
			Name: n.Name, ID: n.ID, MeshKey: n.MeshKey.Value, Endpoint: n.Endpoint.Value, API: n.peerAPI(),
		})
	}
	return l.Normalized()
}

// peerAPI returns where peers reach the node's API outside of the mesh: what was set,
// or else where pcctl reaches it, unless that leads to pcctl's own machine, or else the
// host of the mesh endpoint. None of them may be known.
func (n *Node) peerAPI() address.Address {
	switch {
	case !n.PeerAPI.Value.IsZero():
		return n.PeerAPI.Value
	case !n.Address.Value.IsZero() && !n.Address.Value.IsLocal():
		return n.Address.Value
	}
	return n.Endpoint.Value.WithPort(address.APIPort)
}
