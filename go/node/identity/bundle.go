package identity

import (
	"time"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/node/join"
)

// FromBundle makes an identity of a join bundle, as New does. The bundle stays as it
// is; the caller wipes it.
func FromBundle(b *joinbundle.Bundle) (*Identity, error) {
	key, err := keyOf(b.NodeKey[:])
	if err != nil {
		return nil, err
	}
	i, err := New(Parts{
		Key: key, Certificate: b.NodeCertificate, Authority: b.CACertificate,
		MeshKey: [joinbundle.KeySize]byte(b.WireGuardKey), Volume: b.VolumeID,
		// A bundle without the lists isn't one.
		Membership: append([]byte{}, b.Membership...), Revocations: append([]byte{}, b.Revocations...),
	})
	if err != nil {
		key.Wipe()
		return nil, err
	}
	return i, nil
}

// CheckBundle returns the join.Check of a node: whether a bundle makes an identity
// with which the node can take part in its cluster at the time that now tells.
func CheckBundle(now func() time.Time) join.Check {
	return func(b *joinbundle.Bundle) error {
		i, err := FromBundle(b)
		if err != nil {
			return err
		}
		defer i.Wipe()
		return i.Check(now())
	}
}
