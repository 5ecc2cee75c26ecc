// Package pki is a cluster's public key infrastructure: its certificate authority,
// and the certificates by which admins and nodes know each other.
//
// A cluster has one authority (CA). Its Ed25519 key is derived from the cluster's
// root key and never stored, so that only who can unlock the cluster can issue
// anything. Its certificate follows from the key and the cluster's ID, to the byte,
// and has no end: a new root key gives a new authority.
//
// A certificate says in one place what it is for: a URI among its subject's
// alternative names has the cluster, the role and, of a node, the node's ID. There
// are two roles, and no authority below the first. What else is in a certificate
// follows from that, and one with anything else is refused, whoever signed it.
// docs/formats.md states all of it.
package pki

import (
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"powercloud.unidatum.com/go/keys"
)

// Role is what a certificate entitles to.
type Role string

// The roles.
const (
	// RoleAdmin is the role of people who manage the cluster.
	RoleAdmin Role = "admin"
	// RoleNode is the role of the cluster's nodes.
	RoleNode Role = "node"
)

// How long certificates are valid, from the moment of their issue.
const (
	// AdminLifetime is the lifetime of an admin's certificate.
	AdminLifetime = 30 * 24 * time.Hour
	// NodeLifetime is the longest lifetime of a node's certificate, and the usual
	// one.
	NodeLifetime = 365 * 24 * time.Hour
)

// Allowance is how much earlier than its issue a certificate's validity begins, so
// that a verifier whose clock is behind accepts it. It is a part of the format: the
// time of issue is that of NotBefore and this.
const Allowance = time.Hour

// MaxCertificate is the size in bytes that no certificate exceeds, in DER.
const MaxCertificate = 2048

// Faults of certificates. Errors that wrap them say more.
var (
	// ErrCertificate says that a certificate is none of the cluster's, or has what
	// no certificate of this format has.
	ErrCertificate = errors.New("not a certificate of this cluster")
	// ErrExpired says that a certificate of the cluster has expired.
	ErrExpired = errors.New("certificate has expired")
	// ErrNotYetValid says that a certificate of the cluster isn't valid yet: one of
	// two clocks is wrong by more than Allowance.
	ErrNotYetValid = errors.New("certificate is not valid yet; compare the clocks")
)

// Identity is what a verified certificate says.
type Identity struct {
	// Cluster is the cluster.
	Cluster keys.ClusterID
	// Role is the role in it.
	Role Role
	// Node is the ID of a node; zero in other roles.
	Node NodeID
	// Key is the public key.
	Key ed25519.PublicKey
	// Issued is when the certificate was issued, by the clock of who did, in
	// seconds.
	Issued time.Time
	// Expires is the last second of its validity.
	Expires time.Time
}

// String names the bearer: "admin", or "node" and the node's ID.
func (i Identity) String() string {
	if i.Role == RoleNode {
		return "node " + i.Node.String()
	}
	return string(i.Role)
}

const (
	scheme = "powercloud"
	// domain is below the one that is set aside for private use.
	domain = ".powercloud.internal"
)

// ServerName returns the DNS name in a node's certificate, which a TLS client asks
// for. It can't be resolved.
func ServerName(cluster keys.ClusterID, node NodeID) string {
	return node.String() + "." + cluster.String() + domain
}

// uri is the name that says what a certificate is for.
func (i Identity) uri() *url.URL {
	path := "/" + string(i.Role)
	if i.Role == RoleNode {
		path += "/" + i.Node.String()
	}
	return &url.URL{Scheme: scheme, Host: i.Cluster.String(), Path: path}
}

// parseURI reads what uri writes and nothing else.
func parseURI(u *url.URL) (Identity, error) {
	var i Identity
	cluster, err := keys.ParseClusterID(u.Host)
	if err != nil {
		return i, fmt.Errorf("%w: its name %q has no cluster ID", ErrCertificate, u)
	}
	i.Cluster = cluster
	role, node, _ := strings.Cut(strings.TrimPrefix(u.Path, "/"), "/")
	switch i.Role = Role(role); i.Role {
	case RoleAdmin:
	case RoleNode:
		if i.Node, err = ParseNodeID(node); err != nil {
			return i, fmt.Errorf("%w: its name %q has no node ID", ErrCertificate, u)
		}
	default:
		return i, fmt.Errorf("%w: its role %q is unknown", ErrCertificate, role)
	}
	if i.uri().String() != u.String() {
		return i, fmt.Errorf("%w: its name is %q", ErrCertificate, u)
	}
	return i, nil
}

// usages returns how a certificate of the role may be used. A node also is a
// client, of other nodes.
func (r Role) usages() []x509.ExtKeyUsage {
	if r == RoleNode {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

// lifetime returns the longest lifetime of a certificate of the role.
func (r Role) lifetime() time.Duration {
	if r == RoleNode {
		return NodeLifetime
	}
	return AdminLifetime
}
