package message

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

// Key is a secret of 32 bytes, in base64. Where it is printed, a placeholder shows.
type Key [32]byte

// keyText is how a Key is written.
type keyText []byte

// MarshalJSON writes the key: a message that has one goes to the other side alone.
func (k Key) MarshalJSON() ([]byte, error) { return json.Marshal(keyText(k[:])) }

// UnmarshalJSON reads what MarshalJSON writes.
func (k *Key) UnmarshalJSON(text []byte) error {
	var b keyText
	if err := json.Unmarshal(text, &b); err != nil {
		return err
	}
	defer clear(b)
	if len(b) != len(k) {
		return fmt.Errorf("a key has %d bytes, and this one %d", len(k), len(b))
	}
	copy(k[:], b)
	return nil
}

const placeholder = "message.Key(secret)"

// Format writes a placeholder whatever the verb, so that no log line or error shows
// the key.
func (k Key) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, placeholder) }

// LogValue is the placeholder, for handlers that write JSON.
func (k Key) LogValue() slog.Value { return slog.StringValue(placeholder) }

// Offer is what a node that belongs to no cluster says of itself to somebody who has
// proved to know its enrollment code.
type Offer struct {
	// ID is the node's ID, and Key its Ed25519 public key, for a certificate.
	ID  pki.NodeID `json:"id"`
	Key []byte     `json:"key"`
	// Architecture is "amd64" or "arm64", and Version what it runs.
	Architecture string `json:"arch"`
	Version      string `json:"version"`
	// Disk reports whether there is a disk for the node's state.
	Disk bool `json:"disk"`
}

// Enrollment makes a node a member of a cluster.
type Enrollment struct {
	// Name is the node's name.
	Name string `json:"name"`
	// Authority is the certificate of the cluster's authority, and Certificate what it
	// has issued for the node's key, in DER.
	Authority   []byte `json:"ca"`
	Certificate []byte `json:"certificate"`
	// Volume is the ID of the node's state volume, and VolumeKey the key that the
	// volume's own is to be wrapped with.
	Volume    volumeid.ID `json:"volume"`
	VolumeKey Key         `json:"volume_key"`
}

// Wipe overwrites the key.
func (e *Enrollment) Wipe() { clear(e.VolumeKey[:]) }

// Enrolled is a node's answer once it is a member.
type Enrolled struct {
	// Encrypted reports whether the node's state is on an encrypted volume, rather than
	// in memory or in a folder.
	Encrypted bool `json:"encrypted"`
}
