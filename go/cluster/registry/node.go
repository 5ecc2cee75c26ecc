package registry

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/canonical"
)

// Measurement is what AMD SEV-SNP measured of a machine's start: a SHA-384.
type Measurement [48]byte

// IsZero reports whether it is none.
func (m Measurement) IsZero() bool { return m == Measurement{} }

// MarshalText returns the measurement as 96 lower-case hexadecimal digits.
func (m Measurement) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(m[:])), nil }

// UnmarshalText reads what MarshalText writes and nothing else.
func (m *Measurement) UnmarshalText(text []byte) error {
	return canonical.DecodeHex(m[:], text, "measurement")
}

// Attestation is what a node must show before it gets its volume's key. The zero value
// asks for nothing.
type Attestation struct {
	// SEVSNP asks for a report of AMD SEV-SNP.
	SEVSNP bool `json:"sev_snp"`
	// Measurement is what the report must have measured, or zero for anything.
	Measurement Measurement `json:"measurement,omitzero"`
}

// Setting is something about a node that changes, and when it was changed.
type Setting[T comparable] struct {
	// Value is what it was set to; the zero value is none.
	Value T `json:"value,omitzero"`
	// Changed is when that was, in UTC; zero if it was never set. A later change wins
	// over an earlier one.
	Changed time.Time `json:"changed"`
}

// Set changes the value, unless it is that already. A clock that is behind can't make
// the change older than the one before.
func (s *Setting[T]) Set(value T, now time.Time) {
	if s.Value == value {
		return
	}
	changed := now.UTC().Round(0)
	if !changed.After(s.Changed) {
		changed = s.Changed.Add(time.Nanosecond)
	}
	*s = Setting[T]{Value: value, Changed: changed}
}

// IsZero reports whether it was never set.
func (s Setting[T]) IsZero() bool {
	var none T
	return s.Value == none && s.Changed.IsZero()
}

func (s Setting[T]) validate() error {
	if s.IsZero() || !s.Changed.IsZero() && s.Changed.Location() == time.UTC {
		return nil
	}
	return errors.New("a setting's time of change is missing or not in UTC")
}

// Node is what the registry has of a node. Name, ID, Key, Volume and Enrolled don't
// change.
type Node struct {
	// Name is the node's name, as nodename.Check allows it.
	Name string `json:"name"`
	// ID is the node's ID, which follows from its key.
	ID pki.NodeID `json:"id"`
	// Key is the node's Ed25519 public key.
	Key ed25519.PublicKey `json:"key"`
	// Volume is the ID of its state volume.
	Volume volumeid.ID `json:"volume"`
	// Enrolled is when it was enrolled or provisioned, in UTC.
	Enrolled time.Time `json:"enrolled"`
	// Address is where pcctl reaches its API; none if that isn't known yet.
	Address Setting[address.Address] `json:"address,omitzero"`
	// Endpoint is where peers reach its WireGuard; none if they can't reach it first.
	Endpoint Setting[address.Address] `json:"endpoint,omitzero"`
	// PeerAPI is where peers reach its API outside of the mesh, if that isn't Address.
	PeerAPI Setting[address.Address] `json:"peer_api,omitzero"`
	// MeshKey is the public key of its WireGuard; none if it isn't known yet.
	MeshKey Setting[meshkey.Public] `json:"mesh_key,omitzero"`
	// Attestation is what it must show to be unlocked.
	Attestation Setting[Attestation] `json:"attestation,omitzero"`
	// Confirmed is whether it is known to have got its identity. It is entered here
	// before it gets that, so that no key of a volume is ever lost; where the rest then
	// failed, another machine can have its name.
	Confirmed Setting[bool] `json:"confirmed,omitzero"`
}

// NewNode returns the entry of a node that is being enrolled.
func NewNode(name string, key ed25519.PublicKey, volume volumeid.ID, now time.Time) (Node, error) {
	if err := nodename.Check(name); err != nil {
		return Node{}, err
	}
	id, err := pki.NodeIDOf(key)
	if err != nil {
		return Node{}, err
	}
	return Node{Name: name, ID: id, Key: key, Volume: volume, Enrolled: now.UTC().Round(0)}, nil
}

// SetAddress sets where pcctl reaches the node's API. If the node's mesh endpoint is
// empty, or is what follows from the address before, it becomes what follows from the
// new one: the same host with the port of the mesh, unless that is "localhost".
// endpoint reports whether it was changed.
func (n *Node) SetAddress(a address.Address, now time.Time) (endpoint bool) {
	derived := n.Endpoint.Value.IsZero() || n.Endpoint.Value == n.Address.Value.WithPort(address.MeshPort)
	n.Address.Set(a, now)
	next := a.WithPort(address.MeshPort)
	if !derived || a.Host() == "localhost" || next == n.Endpoint.Value {
		return false
	}
	n.Endpoint.Set(next, now)
	return true
}

func (n *Node) validate() error {
	if err := nodename.Check(n.Name); err != nil {
		return err
	}
	if id, err := pki.NodeIDOf(n.Key); err != nil || id != n.ID {
		return fmt.Errorf("the ID of node %s is not that of its key", n.Name)
	}
	if n.Enrolled.IsZero() || n.Enrolled.Location() != time.UTC {
		return fmt.Errorf("the time of enrollment of node %s is missing or not in UTC", n.Name)
	}
	if a := n.Attestation.Value; !a.SEVSNP && !a.Measurement.IsZero() {
		return fmt.Errorf("node %s has a measurement and needs no attestation", n.Name)
	}
	err := errors.Join(n.Address.validate(), n.Endpoint.validate(), n.PeerAPI.validate(), n.MeshKey.validate(), n.Attestation.validate(), n.Confirmed.validate())
	if err != nil {
		return fmt.Errorf("node %s: %w", n.Name, err)
	}
	return nil
}
