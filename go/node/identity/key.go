package identity

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"powercloud.unidatum.com/go/pki"
)

// Key is a node's Ed25519 private key. A node that has no identity makes one when it
// starts, by which it is known until it is enrolled, and then for good: it is only in
// memory until Install. It is neither printed nor marshaled, and is the crypto.Signer
// of TLS certificates. Its methods may be called concurrently, except that Wipe must
// come after all others.
type Key struct {
	// private is behind a pointer of its own, at which package fmt stops even where it
	// may not call Format, as for a field that isn't exported.
	private     *[ed25519.PrivateKeySize]byte
	public      ed25519.PublicKey
	fingerprint pki.Fingerprint
}

var errWiped = errors.New("the node's key was wiped")

var _ crypto.Signer = (*Key)(nil)

// NewKey makes a key. random must be a cryptographically secure source.
func NewKey(random io.Reader) (*Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	defer clear(seed)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("reading random bytes for the node's key: %w", err)
	}
	return keyOf(seed)
}

// keyOf returns the key with a seed.
func keyOf(seed []byte) (*Key, error) { return newKey(ed25519.NewKeyFromSeed(seed)) }

// newKey takes over a private key, and clears it.
func newKey(private ed25519.PrivateKey) (*Key, error) {
	defer clear(private)
	public, _ := private.Public().(ed25519.PublicKey)
	fingerprint, err := pki.FingerprintOf(public)
	if err != nil {
		return nil, err
	}
	kept := [ed25519.PrivateKeySize]byte(private)
	return &Key{&kept, public, fingerprint}, nil
}

// Fingerprint returns the fingerprint of the public key, which people compare.
func (k *Key) Fingerprint() pki.Fingerprint { return k.fingerprint }

// ID returns the ID of the node whose key it is.
func (k *Key) ID() pki.NodeID { return k.fingerprint.NodeID() }

// Public returns the public key, an ed25519.PublicKey.
func (k *Key) Public() crypto.PublicKey { return k.public }

// Sign signs a message with Ed25519; the options say whether it is one of its
// variants. The random source isn't used.
func (k *Key) Sign(random io.Reader, message []byte, options crypto.SignerOpts) ([]byte, error) {
	if k.wiped() {
		return nil, errWiped
	}
	return ed25519.PrivateKey(k.private[:]).Sign(random, message, options)
}

func (k *Key) wiped() bool { return *k.private == [ed25519.PrivateKeySize]byte{} }

// matches reports whether a public key belongs to it.
func (k *Key) matches(public ed25519.PublicKey) bool { return k.public.Equal(public) }

// marshal returns the key in PEM. The caller clears it.
func (k *Key) marshal() ([]byte, error) {
	if k.wiped() {
		return nil, errWiped
	}
	return pki.MarshalKey(k.private[:])
}

// Wipe overwrites the private key. It may be called more than once.
func (k *Key) Wipe() { clear(k.private[:]) }

const placeholder = "identity.Key(secret)"

// Format writes a placeholder whatever the verb, so that no log line or error shows
// the key.
func (k Key) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, placeholder)
}

// MarshalText returns a placeholder, for logs that are written as JSON.
func (k Key) MarshalText() ([]byte, error) { return []byte(placeholder), nil }
