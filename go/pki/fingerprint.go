package pki

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/pki/canonical"
)

// FingerprintSize is the size of a Fingerprint in bytes.
const FingerprintSize = 10

// Fingerprint is what a person can compare or type of a public key: the first 80
// bits of the SHA-256 of its SubjectPublicKeyInfo in DER (RFC 5280, RFC 8410).
// Making another key with a given fingerprint takes about 2^80 tries.
type Fingerprint [FingerprintSize]byte

// FingerprintOf returns a public key's fingerprint.
func FingerprintOf(key ed25519.PublicKey) (Fingerprint, error) {
	if len(key) != ed25519.PublicKeySize {
		return Fingerprint{}, errors.New("pki: an Ed25519 public key has 32 bytes")
	}
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		return Fingerprint{}, err
	}
	sum := sha256.Sum256(der)
	return Fingerprint(sum[:FingerprintSize]), nil
}

// Short returns the first 64 bits, which is how the fingerprint of a CA is shown:
// 16 lower-case hexadecimal digits.
func (f Fingerprint) Short() string { return hex.EncodeToString(f[:nodeIDSize]) }

const nodeIDSize = 8

// NodeID names a node: the first 64 bits of its key's fingerprint. It isn't a
// secret.
type NodeID [nodeIDSize]byte

// NodeIDOf returns the ID of the node with a public key.
func NodeIDOf(key ed25519.PublicKey) (NodeID, error) {
	f, err := FingerprintOf(key)
	if err != nil {
		return NodeID{}, err
	}
	return f.NodeID(), nil
}

// NodeID returns the ID of the node whose key has the fingerprint.
func (f Fingerprint) NodeID() NodeID { return NodeID(f[:nodeIDSize]) }

// String returns the ID as 16 lower-case hexadecimal digits.
func (id NodeID) String() string { return hex.EncodeToString(id[:]) }

// ParseNodeID reads what String writes and nothing else.
func ParseNodeID(s string) (NodeID, error) {
	var id NodeID
	if err := canonical.DecodeHex(id[:], []byte(s), "node ID"); err != nil {
		return NodeID{}, fmt.Errorf("pki: %w", err)
	}
	return id, nil
}

// MarshalText returns what String does.
func (id NodeID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes and nothing else.
func (id *NodeID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseNodeID(string(text))
	return err
}
