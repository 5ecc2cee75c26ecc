// Package proof is how pcctl proves to a node that belongs to no cluster that it was
// given the code on the node's console.
//
// An enrollment code is 20 bytes: the fingerprint of the node's public key, by which
// pcctl knows the node, and a secret of 10 bytes, by which the node knows pcctl. With
// every request comes a MAC under a key that follows from the secret:
//
//	key = HKDF(secret, salt: the fingerprint, "powercloud v1 enrollment", 32)
//	MAC = HMAC-SHA256(key, binding || path || 0 || body)
//
// The binding belongs to the TLS connection alone (RFC 8446, section 7.5), so that what
// was sent over one is no use on another.
package proof

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"powercloud.unidatum.com/go/keys/code"
	"powercloud.unidatum.com/go/pki"
)

// Header is the HTTP header with the MAC, in hexadecimal digits.
const Header = "Powercloud-Proof"

// SecretSize is the size of a code's secret in bytes.
const SecretSize = 10

// label tells the key from all others.
const label = "powercloud v1 enrollment"

// exporter is the label of a connection's binding.
const exporter = "EXPORTER-powercloud-enrollment"

// Code is what a node's console shows.
type Code struct {
	// Fingerprint is that of the node's key.
	Fingerprint pki.Fingerprint
	// Secret is known to those who can read the console.
	Secret [SecretSize]byte
}

// ParseCode reads a code as somebody typed it.
func ParseCode(text string) (Code, error) {
	b, err := code.Parse(text, pki.FingerprintSize+SecretSize)
	if err != nil {
		return Code{}, err
	}
	defer clear(b)
	var c Code
	copy(c.Secret[:], b[copy(c.Fingerprint[:], b):])
	return c, nil
}

// Text returns the code as it is shown.
func (c Code) Text() string {
	return code.Format(append(c.Fingerprint[:], c.Secret[:]...))
}

// Format writes a placeholder whatever the verb, so that no log line or error shows
// the secret.
func (c Code) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, placeholder) }

// LogValue is the placeholder, for handlers that write JSON.
func (c Code) LogValue() slog.Value { return slog.StringValue(placeholder) }

const placeholder = "proof.Code(secret)"

// Wipe overwrites the secret.
func (c *Code) Wipe() { clear(c.Secret[:]) }

// MAC returns the proof for a request on a connection with a binding.
func (c *Code) MAC(binding []byte, path string, body []byte) ([]byte, error) {
	key, err := c.key()
	if err != nil {
		return nil, err
	}
	defer clear(key)
	mac := hmac.New(sha256.New, key)
	for _, part := range [][]byte{binding, []byte(path), {0}, body} {
		mac.Write(part)
	}
	return mac.Sum(nil), nil
}

// key returns the key of the code's MACs.
func (c *Code) key() ([]byte, error) {
	return hkdf.Key(sha256.New, c.Secret[:], c.Fingerprint[:], label, sha256.Size)
}

// Check reports whether a MAC is the proof for a request, in a time that doesn't tell
// how much of it is right.
func (c *Code) Check(got, binding []byte, path string, body []byte) bool {
	want, err := c.MAC(binding, path, body)
	return err == nil && hmac.Equal(got, want)
}

// Binding returns what belongs to a TLS connection alone.
func Binding(state *tls.ConnectionState) ([]byte, error) {
	if !state.HandshakeComplete {
		return nil, errors.New("the connection's handshake isn't over")
	}
	return state.ExportKeyingMaterial(exporter, nil, sha256.Size)
}
