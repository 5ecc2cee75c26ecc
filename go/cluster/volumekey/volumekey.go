// Package volumekey derives the keys that unlock nodes' state volumes from the
// cluster's root key, as docs/formats.md, "Volume header", says.
package volumekey

import (
	"crypto/hkdf"
	"crypto/sha256"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys"
)

// Size is the size of a key in bytes.
const Size = 32

// label tells these keys from all others.
const label = "powercloud v1 state volume"

// Derive returns the key of the volume with an ID. It wraps the key that the node chose
// for the volume, and tells nothing of the keys of other volumes. The caller wipes it.
func Derive(root *keys.Root, volume volumeid.ID) ([Size]byte, error) {
	all := root.Derive(keys.PurposeStateVolumes)
	defer clear(all)
	key, err := hkdf.Key(sha256.New, all, volume[:], label, Size)
	if err != nil {
		return [Size]byte{}, err
	}
	defer clear(key)
	return [Size]byte(key), nil
}
