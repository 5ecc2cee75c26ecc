package identity

import (
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

// CheckBundle is the join.Check of a node: whether a bundle makes an identity with which
// the node can take part in its cluster. Time is none of it: at a machine's first start
// its clock may be years off, and an admin can renew a certificate that has expired.
func CheckBundle(b *joinbundle.Bundle) error {
	i, err := FromBundle(b)
	if err != nil {
		return err
	}
	defer i.Wipe()
	return i.Check(i.Self.Issued)
}

var _ join.Check = CheckBundle
