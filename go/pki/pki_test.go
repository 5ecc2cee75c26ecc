package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys/keystest"
)

// TestGolden holds the format still: the files were written by the first version of
// this package, and are added to, never changed.
func TestGolden(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	for name, written := range map[string]*x509.Certificate{
		"authority-v1.pem": ca.Authority().Certificate(),
		"admin-v1.pem":     issueAdmin(t, ca, 1),
		"node-v1.pem":      issueNode(t, ca, 2),
	} {
		golden, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Error(err)
		}
		if string(MarshalCertificate(written)) != string(golden) {
			t.Errorf("%s is written\n%s", name, MarshalCertificate(written))
			continue
		}
		read, err := ParseCertificate(golden)
		if err != nil {
			t.Fatal(err)
		}
		if read.IsCA {
			if _, err := NewAuthority(read); err != nil {
				t.Error(err)
			}
			continue
		}
		if _, err := ca.Authority().Verify(read, issued()); err != nil {
			t.Error(err)
		}
	}
}

// TestSameAuthority: whoever unlocks a cluster gets the same authority, and nobody
// else does.
func TestSameAuthority(t *testing.T) {
	first, second := keystest.First(t), keystest.Second(t)
	one, again := newCA(t, first).Authority(), newCA(t, first).Authority()
	if string(one.Certificate().Raw) != string(again.Certificate().Raw) {
		t.Error("the same root key gave two authorities")
	}
	if other := newCA(t, second).Authority(); other.Fingerprint() == one.Fingerprint() {
		t.Error("two root keys gave one authority")
	}
	if got := one.Fingerprint().Short(); len(got) != 16 || one.Cluster() != first.ID {
		t.Errorf("cluster %s, CA %s", one.Cluster(), got)
	}
}

func TestIdentities(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	admin, err := ca.Authority().Verify(issueAdmin(t, ca, 1), issued())
	if err != nil {
		t.Fatal(err)
	}
	if admin.Role != RoleAdmin || admin.Node != (NodeID{}) || admin.Cluster != keystest.First(t).ID || admin.String() != "admin" {
		t.Errorf("the admin is %+v", admin)
	}
	if !admin.Issued.Equal(issued()) || admin.Expires.Sub(admin.Issued) != 30*24*time.Hour || !admin.Key.Equal(publicKey(1)) {
		t.Errorf("the admin is %+v", admin)
	}
	certificate := issueNode(t, ca, 2)
	node, err := ca.Authority().Verify(certificate, issued())
	if err != nil {
		t.Fatal(err)
	}
	want, err := NodeIDOf(publicKey(2))
	if err != nil {
		t.Fatal(err)
	}
	if node.Role != RoleNode || node.Node != want || node.String() != "node "+want.String() || node.Expires.Sub(node.Issued) != 365*24*time.Hour {
		t.Errorf("the node is %+v", node)
	}
	if err := certificate.VerifyHostname(ServerName(node.Cluster, node.Node)); err != nil {
		t.Error(err)
	}
}

func TestValidity(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	authority, certificate := ca.Authority(), issueNode(t, ca, 2)
	for _, test := range []struct {
		at   time.Time
		want error
	}{
		{issued().Add(-Allowance - time.Second), ErrNotYetValid},
		{issued().Add(-Allowance), nil},
		{issued(), nil},
		{issued().Add(NodeLifetime), nil},
		{issued().Add(NodeLifetime + time.Second), ErrExpired},
	} {
		if _, err := authority.Verify(certificate, test.at); !errors.Is(err, test.want) {
			t.Errorf("at %s: %v, want %v", test.at, err, test.want)
		}
		if node, err := authority.IdentifyNode(certificate); err != nil || node.Role != RoleNode {
			t.Errorf("at %s a node isn't identified: %v", test.at, err)
		}
	}
	if _, err := authority.IdentifyNode(issueAdmin(t, ca, 1)); !errors.Is(err, ErrCertificate) {
		t.Errorf("an admin is identified as a node: %v", err)
	}
	// That of another cluster isn't called expired: it would be renewed in vain.
	other := newCA(t, keystest.Second(t)).Authority()
	if _, err := other.Verify(certificate, issued().Add(2*NodeLifetime)); !errors.Is(err, ErrCertificate) || errors.Is(err, ErrExpired) {
		t.Errorf("another cluster's: %v", err)
	}
	if _, err := other.IdentifyNode(certificate); !errors.Is(err, ErrCertificate) {
		t.Errorf("another cluster's is identified: %v", err)
	}
}

func TestLifetimes(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	for lifetime, works := range map[time.Duration]bool{
		-time.Second: false, 0: false, time.Second - 1: false, time.Second: true,
		90 * time.Second: true, NodeLifetime: true, NodeLifetime + 1: false,
	} {
		certificate, err := ca.IssueNode(publicKey(2), issued(), lifetime, zeros())
		if (err == nil) != works {
			t.Errorf("%s: %v", lifetime, err)
		}
		if err == nil && !certificate.NotAfter.Equal(issued().Add(lifetime)) {
			t.Errorf("%s: valid to %s", lifetime, certificate.NotAfter)
		}
	}
}

func TestIssueRefuses(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	if _, err := ca.IssueAdmin(publicKey(1)[:31], issued(), zeros()); err == nil {
		t.Error("a short key was certified")
	}
	if _, err := ca.IssueNode(nil, issued(), NodeLifetime, zeros()); err == nil {
		t.Error("no key was certified")
	}
	if _, err := ca.IssueAdmin(publicKey(1), issued(), strings.NewReader("short")); err == nil {
		t.Error("a serial number was made of too few bytes")
	}
	if _, err := ca.IssueAdmin(publicKey(1), time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), zeros()); err == nil {
		t.Error("a certificate older than its authority was issued")
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	for _, shown := range []string{fmt.Sprint(ca), fmt.Sprintf("%+v %#v %x", ca, ca, ca)} {
		if strings.ReplaceAll(shown, "pki.CA(secret)", "") != strings.Repeat(" ", strings.Count(shown, " ")) {
			t.Errorf("shown as %s", shown)
		}
	}
	ca.Wipe()
	if _, err := ca.IssueAdmin(publicKey(1), issued(), zeros()); err == nil {
		t.Error("a wiped authority issues certificates")
	}
}

func TestNodeIDs(t *testing.T) {
	fingerprint, err := FingerprintOf(publicKey(2))
	if err != nil {
		t.Fatal(err)
	}
	id := fingerprint.NodeID()
	if id.String() != fingerprint.Short() || !strings.HasPrefix(fmt.Sprintf("%x", fingerprint[:]), id.String()) {
		t.Errorf("fingerprint %x, node %s", fingerprint, id)
	}
	if parsed, err := ParseNodeID(id.String()); err != nil || parsed != id {
		t.Errorf("%s reads as %s, %v", id, parsed, err)
	}
	for _, bad := range []string{"", "262c2fdc861a9cf", "262c2fdc861a9cf22", "262C2FDC861A9CF2", "262c2fdc861a9cfg", " 262c2fdc861a9cf"} {
		if _, err := ParseNodeID(bad); err == nil {
			t.Errorf("%q is taken for a node ID", bad)
		}
	}
}

// TestTLS: Go's TLS takes the certificates as they are, and tells a node from another.
func TestTLS(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	roots := x509.NewCertPool()
	roots.AddCert(ca.Authority().Certificate())
	node, admin := issueNode(t, ca, 2), issueAdmin(t, ca, 1)
	now := func() time.Time { return issued() }
	handshake := func(name string) error {
		client, server := net.Pipe()
		defer client.Close()
		defer server.Close()
		served := make(chan error, 1)
		go func() {
			served <- tls.Server(server, &tls.Config{
				Time: now, MinVersion: tls.VersionTLS13, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
				Certificates: []tls.Certificate{{Certificate: [][]byte{node.Raw}, PrivateKey: privateKey(2)}},
			}).HandshakeContext(t.Context())
			server.Close()
		}()
		err := tls.Client(client, &tls.Config{
			Time: now, MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: name,
			Certificates: []tls.Certificate{{Certificate: [][]byte{admin.Raw}, PrivateKey: privateKey(1)}},
		}).HandshakeContext(t.Context())
		client.Close()
		return errors.Join(err, <-served)
	}
	bearer, err := ca.Authority().Verify(node, issued())
	if err != nil {
		t.Fatal(err)
	}
	if err := handshake(ServerName(bearer.Cluster, bearer.Node)); err != nil {
		t.Error(err)
	}
	if err := handshake(ServerName(bearer.Cluster, NodeID{})); err == nil {
		t.Error("a node passes for another")
	}
}
