package join

import (
	"bytes"
	"testing"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/volumeid"
)

// example returns a bundle.
func example() *joinbundle.Bundle {
	key := func(fill byte) joinbundle.Key {
		return joinbundle.Key(bytes.Repeat([]byte{fill}, joinbundle.KeySize))
	}
	return &joinbundle.Bundle{
		NodeKey: key(1), NodeCertificate: []byte("the node's certificate"), CACertificate: []byte("the CA's certificate"),
		WireGuardKey: key(2), VolumeID: volumeid.ID{3}, VolumeKey: key(4),
		Membership: []byte("the membership list"), Revocations: []byte("the revocation list"),
	}
}

func encode(t testing.TB, b *joinbundle.Bundle) []byte {
	t.Helper()
	text, err := b.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return text
}
