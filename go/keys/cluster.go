package keys

import (
	"encoding/hex"
	"errors"
)

// ClusterID names a cluster: 16 random bytes, chosen when it is created. It is
// not a secret.
type ClusterID [16]byte

// String returns the ID as 32 lower-case hexadecimal digits.
func (id ClusterID) String() string {
	return hex.EncodeToString(id[:])
}

// ParseClusterID reads what String writes and nothing else.
func ParseClusterID(s string) (ClusterID, error) {
	var id ClusterID
	if len(s) != hex.EncodedLen(len(id)) {
		return ClusterID{}, errors.New("keys: a cluster ID is 32 lower-case hexadecimal digits")
	}
	// Decoding accepts upper case; comparing catches it, so that an ID has one
	// spelling.
	if _, err := hex.Decode(id[:], []byte(s)); err != nil || id.String() != s {
		return ClusterID{}, errors.New("keys: a cluster ID is 32 lower-case hexadecimal digits")
	}
	return id, nil
}

// MarshalText returns what String does.
func (id ClusterID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText reads what MarshalText writes and nothing else.
func (id *ClusterID) UnmarshalText(text []byte) (err error) {
	*id, err = ParseClusterID(string(text))
	return err
}
