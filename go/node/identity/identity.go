// Package identity is what a node keeps of its identity, and what can be done with it:
// its keys, its certificate and the authority that issued it, the ID of its state
// volume, and the newest membership and revocation lists.
//
// An Identity is checked when it is made: all that is in it belongs together. It never
// changes, so that those who work with one needn't lock anything. Kept is the identity
// in a node's state folder, which is there as a whole or not at all, and is replaced
// part by part; who works with the current one is told when there is another.
//
// A node without one has a Key in memory, by which it is known until it is enrolled.
//
// docs/formats.md states every file.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/nodename"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// ErrUnlisted says that a node isn't on the membership list.
var ErrUnlisted = errors.New("the membership list doesn't name this node")

// Parts are what a new identity is made of.
type Parts struct {
	// Key is the node's key.
	Key *Key
	// Name is the node's name at its enrollment; "" if it isn't known.
	Name string
	// Certificate is the node's certificate and Authority that of the cluster's
	// authority, in DER.
	Certificate, Authority []byte
	// MeshKey is the private key of the node's WireGuard.
	MeshKey meshkey.Private
	// Volume is the ID of the node's state volume; zero if it has none.
	Volume volumeid.ID
	// Membership and Revocations are the signed lists; nil where there is none yet.
	Membership, Revocations []byte
}

// Identity is a node's identity. Treat one as read-only. It is printed without its
// secrets.
type Identity struct {
	// Certificate is the node's certificate, which may have expired, and Self what it
	// says.
	Certificate *x509.Certificate
	Self        pki.Identity
	// Authority is the cluster's authority.
	Authority *pki.Authority
	// Volume is the ID of the node's state volume; zero if it has none.
	Volume volumeid.ID
	// Membership is the newest signed membership list, nil if there is none yet, and
	// Members what it says.
	Membership *document.Document
	Members    membership.List
	// Revocations is the newest signed revocation list, nil if there is none yet, and
	// Revoked what it says.
	Revocations *document.Document
	Revoked     revocation.List

	// first is the node's name at its enrollment; "" if it isn't known.
	first   string
	secrets *secrets
	meshKey meshkey.Public
}

// secrets are behind a pointer: all versions of an identity share them, and they are
// wiped together.
type secrets struct {
	key  *Key
	mesh meshkey.Private
}

// New makes an identity of its parts, if they belong together: the certificate is one
// that the authority has issued for the key, whether it is valid now or not, and the
// authority has signed the lists. What the lists say of the node isn't looked at: see
// Check. The identity has the key, and a copy of the mesh key.
func New(p Parts) (*Identity, error) {
	if p.Key == nil {
		return nil, errors.New("there is no key for the node's identity")
	}
	if p.Name != "" {
		if err := nodename.Check(p.Name); err != nil {
			return nil, err
		}
	}
	authority, err := pki.ParseAuthority(p.Authority)
	if err != nil {
		return nil, err
	}
	i := &Identity{Authority: authority, first: p.Name, Volume: p.Volume, secrets: &secrets{p.Key, p.MeshKey}}
	if i.meshKey, err = p.MeshKey.Public(); err != nil {
		return nil, err
	}
	if len(p.Certificate) > pki.MaxCertificate {
		return nil, fmt.Errorf("the node's certificate is larger than %d bytes", pki.MaxCertificate)
	}
	certificate, err := x509.ParseCertificate(p.Certificate)
	if err != nil {
		return nil, fmt.Errorf("the node's certificate can't be read: %w", err)
	}
	if err := i.certify(certificate); err != nil {
		return nil, err
	}
	if p.Membership != nil {
		if err := i.setMembership(p.Membership); err != nil {
			return nil, err
		}
	}
	if p.Revocations != nil {
		if err := i.setRevocations(p.Revocations); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// certify gives an identity that is being made its certificate.
func (i *Identity) certify(certificate *x509.Certificate) error {
	self, err := i.Authority.IdentifyNode(certificate)
	if err != nil {
		return fmt.Errorf("the node's certificate: %w", err)
	}
	if !i.secrets.key.matches(self.Key) {
		return fmt.Errorf("the certificate of %s is not for this node's key", self)
	}
	i.Certificate, i.Self = certificate, self
	return nil
}

// setMembership gives an identity that is being made its membership list.
func (i *Identity) setMembership(signed []byte) (err error) {
	if i.Membership, err = document.Open(i.Authority, document.Membership, signed); err != nil {
		return fmt.Errorf("the membership list: %w", err)
	}
	i.Members, err = membership.Decode(i.Membership.Body)
	return err
}

// setRevocations gives an identity that is being made its revocation list.
func (i *Identity) setRevocations(signed []byte) (err error) {
	if i.Revocations, err = document.Open(i.Authority, document.Revocations, signed); err != nil {
		return fmt.Errorf("the revocation list: %w", err)
	}
	i.Revoked, err = revocation.Decode(i.Revocations.Body)
	return err
}

// Name returns the node's name, which the membership list has. Before there is one that
// has it, it is the name by which the node was enrolled, or "".
func (i *Identity) Name() string {
	if n, listed := i.Members.Find(i.Self.Node); listed {
		return n.Name
	}
	return i.first
}

// Check returns an error unless the node can take part in its cluster at a time: its
// certificate is valid then, the membership list names the node, and the revocation
// list doesn't revoke it. It wraps pki.ErrExpired, pki.ErrNotYetValid, ErrUnlisted or
// revocation.ErrRevoked.
func (i *Identity) Check(at time.Time) error {
	if _, err := i.Verify(i.Certificate, at); err != nil {
		return err
	}
	if _, found := i.Members.Find(i.Self.Node); !found {
		return fmt.Errorf("%w, %s", ErrUnlisted, i.Self.Node)
	}
	return nil
}

// Verify returns whose certificate this is, if the cluster's authority has issued it,
// it is valid at a time, and it isn't revoked. The errors wrap those of
// pki.Authority.Verify, or revocation.ErrRevoked. Whether the bearer has the key is
// for TLS to find out.
func (i *Identity) Verify(certificate *x509.Certificate, at time.Time) (pki.Identity, error) {
	bearer, err := i.Authority.Verify(certificate, at)
	if err != nil {
		return pki.Identity{}, err
	}
	if err := i.Revoked.Check(bearer); err != nil {
		return pki.Identity{}, err
	}
	return bearer, nil
}

// Key returns the node's key.
func (i *Identity) Key() *Key { return i.secrets.key }

// MeshKey returns the private key of the node's WireGuard. Whoever takes it wipes it.
func (i *Identity) MeshKey() meshkey.Private { return i.secrets.mesh }

// MeshPublic returns the public key of the node's WireGuard.
func (i *Identity) MeshPublic() meshkey.Public { return i.meshKey }

// TLS returns the certificate and the key by which the node shows in TLS who it is.
func (i *Identity) TLS() tls.Certificate {
	return tls.Certificate{Certificate: [][]byte{i.Certificate.Raw}, PrivateKey: i.secrets.key, Leaf: i.Certificate}
}

// Wipe overwrites the secrets of this identity and of those that it was made of or
// that were made of it. It must come after all other use of them, and may be called
// more than once.
func (i *Identity) Wipe() {
	i.secrets.key.Wipe()
	i.secrets.mesh.Wipe()
}

// Format writes whose identity it is, whatever the verb, so that no log line or error
// shows a secret.
func (i Identity) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, i.String())
}

// String says whose identity it is.
func (i Identity) String() string {
	return fmt.Sprintf("identity of %s in cluster %s", i.Self, i.Self.Cluster)
}

// MarshalText returns what String does, for logs that are written as JSON.
func (i Identity) MarshalText() ([]byte, error) { return []byte(i.String()), nil }
