// Package volumeid names the state volumes of nodes.
package volumeid

import (
	"encoding/hex"

	"powercloud.unidatum.com/go/pki/canonical"
)

// Size is the size of an ID in bytes.
const Size = 16

// ID names a node's state volume: 16 random bytes, which pcctl chooses and keeps in
// the registry, written as 32 lower-case hexadecimal digits. It isn't a secret.
type ID [Size]byte

// String returns the ID in hexadecimal.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText returns what String does.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes and nothing else.
func (id *ID) UnmarshalText(text []byte) error {
	return canonical.DecodeHex(id[:], text, "volume ID")
}
