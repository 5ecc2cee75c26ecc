// Package meshkey has the keys by which nodes know each other in the mesh: those of
// their WireGuard, which are Curve25519's (RFC 7748).
package meshkey

import (
	"crypto/ecdh"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"powercloud.unidatum.com/go/pki/canonical"
)

// Size is the size of each key in bytes.
const Size = 32

// Public is the public key of a node's WireGuard. The zero value is no key.
type Public [Size]byte

// IsZero reports whether it is no key.
func (k Public) IsZero() bool { return k == Public{} }

// String returns the key as 64 lower-case hexadecimal digits.
func (k Public) String() string { return hex.EncodeToString(k[:]) }

// MarshalText returns what String does.
func (k Public) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes and nothing else.
func (k *Public) UnmarshalText(text []byte) error {
	return canonical.DecodeHex(k[:], text, "mesh key")
}

// Private is the private key of a node's WireGuard. It is neither printed nor
// marshaled. The zero value is no key.
type Private [Size]byte

// New makes a private key. random must be a cryptographically secure source.
func New(random io.Reader) (Private, error) {
	var k Private
	if _, err := io.ReadFull(random, k[:]); err != nil {
		clear(k[:])
		return Private{}, fmt.Errorf("reading random bytes for a mesh key: %w", err)
	}
	// As RFC 7748 has it, section 5. Whoever uses the key does the same; so it is the
	// same number wherever it is shown.
	k[0] &= 248
	k[31] = k[31]&127 | 64
	return k, nil
}

// IsZero reports whether it is no key.
func (k *Private) IsZero() bool { return *k == Private{} }

// Public returns the public key that belongs to the private one. The zero value has
// none.
func (k *Private) Public() (Public, error) {
	if k.IsZero() {
		return Public{}, errors.New("there is no mesh key, or it was wiped")
	}
	private, err := ecdh.X25519().NewPrivateKey(k[:])
	if err != nil {
		return Public{}, err
	}
	return Public(private.PublicKey().Bytes()), nil
}

// Wipe overwrites the key. It may be called more than once.
func (k *Private) Wipe() { clear(k[:]) }

const placeholder = "meshkey.Private(secret)"

// Format writes a placeholder whatever the verb, so that no log line or error shows
// the key.
func (k Private) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, placeholder)
}

// MarshalText returns a placeholder: package encoding/json, by which some logs are
// written, would otherwise spell the key out.
func (k Private) MarshalText() ([]byte, error) { return []byte(placeholder), nil }
