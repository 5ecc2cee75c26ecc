package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/keys/keystest"
)

// issued is when the certificates of these tests are issued.
func issued() time.Time { return time.Date(2026, 10, 28, 9, 0, 0, 0, time.UTC) }

// zeros is what random bytes are in these tests.
func zeros() *bytes.Reader { return bytes.NewReader(make([]byte, 64)) }

// privateKey returns a key made of a byte.
func privateKey(fill byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
}

func publicKey(fill byte) ed25519.PublicKey {
	return privateKey(fill).Public().(ed25519.PublicKey)
}

func newCA(t testing.TB, cluster keystest.Cluster) *CA {
	t.Helper()
	ca, err := NewCA(cluster.Root(t), cluster.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

func issueAdmin(t testing.TB, ca *CA, fill byte) *x509.Certificate {
	t.Helper()
	certificate, err := ca.IssueAdmin(publicKey(fill), issued(), zeros())
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func issueNode(t testing.TB, ca *CA, fill byte) *x509.Certificate {
	t.Helper()
	certificate, err := ca.IssueNode(publicKey(fill), issued(), NodeLifetime, zeros())
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// otherCluster returns an ID that differs from a cluster's in one bit.
func otherCluster(id keys.ClusterID) keys.ClusterID {
	id[0] ^= 1
	return id
}
