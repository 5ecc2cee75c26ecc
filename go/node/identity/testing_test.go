package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"reflect"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// issued is when the certificates of these tests are issued.
func issued() time.Time { return time.Date(2026, 10, 28, 9, 0, 0, 0, time.UTC) }

func newCA(t testing.TB, cluster keystest.Cluster) *pki.CA {
	t.Helper()
	ca, err := pki.NewCA(cluster.Root(t), cluster.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// newKeyOf returns the key whose seed is made of a byte.
func newKeyOf(t testing.TB, fill byte) *Key {
	t.Helper()
	k, err := NewKey(bytes.NewReader(bytes.Repeat([]byte{fill}, ed25519.SeedSize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func certificate(t testing.TB, ca *pki.CA, k *Key, at time.Time) *x509.Certificate {
	t.Helper()
	c, err := ca.IssueNode(k.public, at, pki.NodeLifetime, bytes.NewReader(make([]byte, 16)))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sign(t testing.TB, ca *pki.CA, kind document.Kind, serial uint64, body []byte, err error) []byte {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	d, err := document.Sign(ca, kind, serial, body)
	if err != nil {
		t.Fatal(err)
	}
	return d.Signed()
}

// members signs a membership list with a node on it.
func members(t testing.TB, ca *pki.CA, serial uint64, name string, id pki.NodeID) []byte {
	t.Helper()
	body, err := membership.List{Nodes: []membership.Node{{Name: name, ID: id}}}.Encode()
	return sign(t, ca, document.Membership, serial, body, err)
}

// revoked signs a revocation list.
func revoked(t testing.TB, ca *pki.CA, serial uint64, l revocation.List) []byte {
	t.Helper()
	body, err := l.Encode()
	return sign(t, ca, document.Revocations, serial, body, err)
}

// parts returns those of an identity in which everything is there: that of home-1,
// with the key that newKeyOf makes of 2.
func parts(t testing.TB, ca *pki.CA) Parts {
	t.Helper()
	k := newKeyOf(t, 2)
	mesh, err := meshkey.New(bytes.NewReader(bytes.Repeat([]byte{3}, meshkey.Size)))
	if err != nil {
		t.Fatal(err)
	}
	return Parts{
		Key: k, Certificate: certificate(t, ca, k, issued()).Raw, Authority: ca.Authority().Certificate().Raw,
		MeshKey: mesh, Volume: volumeid.ID{4}, Name: "home-1",
		Membership:  members(t, ca, 5, "home-1", k.ID()),
		Revocations: revoked(t, ca, 6, revokedBefore()),
	}
}

// revokedBefore is what the list of parts revokes, and so each list after it.
func revokedBefore() revocation.List { return revocation.List{}.WithNode(pki.NodeID{7}) }

// first is the authority of these tests.
func first(t testing.TB) *pki.CA { return newCA(t, keystest.First(t)) }

func build(t testing.TB, p Parts) *Identity {
	t.Helper()
	i, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func install(t testing.TB, folder string, i *Identity) *Kept {
	t.Helper()
	k, err := Install(folder, i)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func load(t testing.TB, folder string) *Identity {
	t.Helper()
	k, err := Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	i, _ := k.Current()
	return i
}

func contents(t testing.TB, i *Identity) files {
	t.Helper()
	f, err := i.files()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// same reports whether two identities are the same, secrets included.
func same(t testing.TB, a, b *Identity) bool {
	t.Helper()
	return reflect.DeepEqual(contents(t, a), contents(t, b))
}

// bundle returns the join bundle with an identity.
func bundle(t testing.TB, i *Identity) *joinbundle.Bundle {
	t.Helper()
	b := &joinbundle.Bundle{
		NodeKey: joinbundle.Key(i.secrets.key.private[:ed25519.SeedSize]), NodeCertificate: i.Certificate.Raw,
		CACertificate: i.Authority.Certificate().Raw, WireGuardKey: joinbundle.Key(i.secrets.mesh),
		VolumeID: i.Volume, VolumeKey: joinbundle.Key{1},
	}
	if i.Membership != nil {
		b.Membership = i.Membership.Signed()
	}
	if i.Revocations != nil {
		b.Revocations = i.Revocations.Signed()
	}
	return b
}
