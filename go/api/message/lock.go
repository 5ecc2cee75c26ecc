package message

import (
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

// Lock is what a locked node says of itself. It is what the volume's header says,
// which anybody can have written: pcctl compares it with the cluster's registry.
type Lock struct {
	ID     pki.NodeID  `json:"id"`
	Name   string      `json:"name"`
	Volume volumeid.ID `json:"volume"`
	// Others is what another copy of the header says, where that is something else.
	Others []Lock `json:"others,omitempty"`
}

// Unlock opens a locked node's state volume.
type Unlock struct {
	// Volume is the ID of the volume that the key is for.
	Volume volumeid.ID `json:"volume"`
	// VolumeKey is the key that wraps the volume's own.
	VolumeKey Key `json:"volume_key"`
}

// Wipe overwrites the key.
func (u *Unlock) Wipe() { clear(u.VolumeKey[:]) }
