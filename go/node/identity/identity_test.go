package identity

import (
	"bytes"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

func TestNew(t *testing.T) {
	ca := first(t)
	p := parts(t, ca)
	i := build(t, p)
	if i.Name() != "home-1" || i.Self.Node != p.Key.ID() || i.Volume != p.Volume {
		t.Errorf("%s, %+v", i.Name(), i.Self)
	}
	if i.Membership.Serial != 5 || i.Revocations.Serial != 6 || !i.Revoked.HasNode(pki.NodeID{7}) {
		t.Errorf("%+v, %+v", i.Membership, i.Revocations)
	}
	public, err := p.MeshKey.Public()
	if mesh := i.MeshKey(); err != nil || mesh != p.MeshKey || i.MeshPublic() != public || i.Key() != p.Key {
		t.Errorf("other keys, %v", err)
	}
	// As after enrollment: without lists, without a volume.
	p = Parts{Key: p.Key, Certificate: p.Certificate, Authority: p.Authority, MeshKey: p.MeshKey}
	if i := build(t, p); i.Name() != "" || i.Membership != nil || !i.Revoked.Empty() {
		t.Errorf("%+v", i.Members)
	}
}

func TestNewRefuses(t *testing.T) {
	ca, other := first(t), newCA(t, keystest.Second(t))
	otherKey := newKeyOf(t, 9)
	admin, err := ca.IssueAdmin(newKeyOf(t, 2).public, issued(), bytes.NewReader(make([]byte, 16)))
	if err != nil {
		t.Fatal(err)
	}
	for title, change := range map[string]func(*Parts){
		"no key":                     func(p *Parts) { p.Key = nil },
		"another key":                func(p *Parts) { p.Key = otherKey },
		"no mesh key":                func(p *Parts) { p.MeshKey = meshkey.Private{} },
		"no certificate":             func(p *Parts) { p.Certificate = nil },
		"a large certificate":        func(p *Parts) { p.Certificate = make([]byte, pki.MaxCertificate+1) },
		"another node's certificate": func(p *Parts) { p.Certificate = certificate(t, ca, otherKey, issued()).Raw },
		"another authority's":        func(p *Parts) { p.Certificate = certificate(t, other, p.Key, issued()).Raw },
		"an admin's certificate":     func(p *Parts) { p.Certificate = admin.Raw },
		"no authority":               func(p *Parts) { p.Authority = nil },
		"another authority":          func(p *Parts) { p.Authority = other.Authority().Certificate().Raw },
		"the node's for authority":   func(p *Parts) { p.Authority = p.Certificate },
		"another's membership":       func(p *Parts) { p.Membership = members(t, other, 5, "home-1", p.Key.ID()) },
		"another's revocations":      func(p *Parts) { p.Revocations = revoked(t, other, 6, revocation.List{}) },
		"lists swapped":              func(p *Parts) { p.Membership, p.Revocations = p.Revocations, p.Membership },
		"empty membership":           func(p *Parts) { p.Membership = []byte{} },
		"membership cut short":       func(p *Parts) { p.Membership = p.Membership[:len(p.Membership)-1] },
		"no membership list": func(p *Parts) {
			p.Membership = sign(t, ca, document.Membership, 5, []byte(`{}`), nil)
		},
		"no revocation list": func(p *Parts) {
			p.Revocations = sign(t, ca, document.Revocations, 5, []byte(`{}`), nil)
		},
	} {
		p := parts(t, ca)
		change(&p)
		if i, err := New(p); err == nil {
			t.Errorf("%s: %s", title, i)
		}
	}
}

func TestCheck(t *testing.T) {
	ca := first(t)
	id := newKeyOf(t, 2).ID()
	for title, test := range map[string]struct {
		change func(*Parts)
		at     time.Time
		want   error
	}{
		"good":          {func(*Parts) {}, issued(), nil},
		"last second":   {func(*Parts) {}, issued().Add(pki.NodeLifetime), nil},
		"expired":       {func(*Parts) {}, issued().Add(pki.NodeLifetime + time.Second), pki.ErrExpired},
		"not yet valid": {func(*Parts) {}, issued().Add(-pki.Allowance - time.Second), pki.ErrNotYetValid},
		"not listed":    {func(p *Parts) { p.Membership = members(t, ca, 5, "home-1", pki.NodeID{1}) }, issued(), ErrUnlisted},
		"no list":       {func(p *Parts) { p.Membership = nil }, issued(), ErrUnlisted},
		"revoked": {func(p *Parts) {
			p.Revocations = revoked(t, ca, 6, revocation.List{}.WithNode(id))
		}, issued(), revocation.ErrRevoked},
		"none revoked": {func(p *Parts) { p.Revocations = nil }, issued(), nil},
	} {
		p := parts(t, ca)
		test.change(&p)
		i := build(t, p)
		if err := i.Check(test.at); !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", title, err)
		}
		if p.Membership == nil {
			continue // No bundle.
		}
		if p.Revocations == nil {
			continue
		}
		// Its clock says nothing to a machine that never had the right time.
		want := test.want
		if want == pki.ErrExpired || want == pki.ErrNotYetValid {
			want = nil
		}
		if err := CheckBundle(bundle(t, i)); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: the bundle: %v", title, err)
		}
	}
}

func TestBundle(t *testing.T) {
	ca := first(t)
	p := parts(t, ca)
	p.Name = ""
	want := build(t, p)
	text, err := bundle(t, want).Encode()
	if err != nil {
		t.Fatal(err)
	}
	b, err := joinbundle.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FromBundle(b)
	if err != nil || !same(t, got, want) {
		t.Fatalf("%s, %v", got, err)
	}
	b.Wipe()
	if !same(t, got, want) {
		t.Error("wiping the bundle wiped the identity")
	}
	other := newCA(t, keystest.Second(t))
	for title, change := range map[string]func(*joinbundle.Bundle){
		"another key":            func(b *joinbundle.Bundle) { b.NodeKey[0]++ },
		"no mesh key":            func(b *joinbundle.Bundle) { b.WireGuardKey = joinbundle.Key{} },
		"another CA":             func(b *joinbundle.Bundle) { b.CACertificate = other.Authority().Certificate().Raw },
		"no certificate":         func(b *joinbundle.Bundle) { b.NodeCertificate = nil },
		"no membership list":     func(b *joinbundle.Bundle) { b.Membership = nil },
		"no revocation list":     func(b *joinbundle.Bundle) { b.Revocations = nil },
		"another's revocations":  func(b *joinbundle.Bundle) { b.Revocations = revoked(t, other, 6, revocation.List{}) },
		"membership cut short":   func(b *joinbundle.Bundle) { b.Membership = b.Membership[1:] },
		"certificate cut short":  func(b *joinbundle.Bundle) { b.NodeCertificate = b.NodeCertificate[1:] },
		"something for a list":   func(b *joinbundle.Bundle) { b.Membership = []byte("the membership list") },
		"one list for the other": func(b *joinbundle.Bundle) { b.Membership = b.Revocations },
	} {
		b := bundle(t, want)
		change(b)
		if err := CheckBundle(b); err == nil {
			t.Errorf("%s: it is accepted", title)
		} else if strings.Contains(err.Error(), fmt.Sprintf("%x", b.NodeKey[:])) {
			t.Errorf("%s: %v", title, err)
		}
	}
}

func TestVerify(t *testing.T) {
	ca := first(t)
	removed, peer := newKeyOf(t, 8), newKeyOf(t, 9)
	admin := func(at time.Time) *x509.Certificate {
		c, err := ca.IssueAdmin(peer.public, at, bytes.NewReader(make([]byte, 16)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	p := parts(t, ca)
	p.Revocations = revoked(t, ca, 7, revocation.List{}.WithNode(removed.ID()).WithAdmins(issued()))
	i := build(t, p)
	for title, test := range map[string]struct {
		certificate *x509.Certificate
		at          time.Time
		want        error
	}{
		"a node":            {certificate(t, ca, peer, issued()), issued(), nil},
		"an admin":          {admin(issued()), issued(), nil},
		"an expired node":   {certificate(t, ca, peer, issued()), issued().Add(2 * pki.NodeLifetime), pki.ErrExpired},
		"too early":         {certificate(t, ca, peer, issued()), issued().Add(-pki.NodeLifetime), pki.ErrNotYetValid},
		"a removed node":    {certificate(t, ca, removed, issued().Add(time.Hour)), issued(), revocation.ErrRevoked},
		"an earlier admin":  {admin(issued().Add(-time.Second)), issued(), revocation.ErrRevoked},
		"another cluster's": {certificate(t, newCA(t, keystest.Second(t)), peer, issued()), issued(), pki.ErrCertificate},
		"the authority":     {ca.Authority().Certificate(), issued(), pki.ErrCertificate},
	} {
		bearer, err := i.Verify(test.certificate, test.at)
		if !errors.Is(err, test.want) || (err == nil) != (test.want == nil) {
			t.Errorf("%s: %v", title, err)
		}
		if (err == nil) != (bearer.Role != "") {
			t.Errorf("%s: %s", title, bearer)
		}
	}
	if bearer, err := i.Verify(certificate(t, ca, peer, issued()), issued()); err != nil || bearer.Node != peer.ID() || !peer.matches(bearer.Key) {
		t.Errorf("%+v, %v", bearer, err)
	}
}

// TestTLS: TLS takes the key as it is.
func TestTLS(t *testing.T) {
	i := build(t, parts(t, first(t)))
	roots := x509.NewCertPool()
	roots.AddCert(i.Authority.Certificate())
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	served := make(chan error, 1)
	go func() {
		served <- tls.Server(server, &tls.Config{
			Time: issued, MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAndVerifyClientCert,
			ClientCAs: roots, Certificates: []tls.Certificate{i.TLS()},
		}).HandshakeContext(t.Context())
	}()
	err := tls.Client(client, &tls.Config{
		Time: issued, MinVersion: tls.VersionTLS13, RootCAs: roots,
		ServerName: pki.ServerName(i.Self.Cluster, i.Self.Node), Certificates: []tls.Certificate{i.TLS()},
	}).HandshakeContext(t.Context())
	if err := errors.Join(err, <-served); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	ca, err := first(t), error(nil)
	p := parts(t, ca)
	// With secrets that nothing else looks like.
	var secret [2 * 32]byte
	for i := range secret {
		secret[i] = byte(i*37 + 11)
	}
	if p.Key, err = NewKey(bytes.NewReader(secret[:32])); err != nil {
		t.Fatal(err)
	}
	p.Certificate, p.MeshKey = certificate(t, ca, p.Key, issued()).Raw, [32]byte(secret[32:])
	i := build(t, p)
	kept := install(t, t.TempDir(), i)
	var log bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(handler).Info("x", "identity", i, "value", *i, "parts", p, "key", p.Key, "tls", i.TLS(), "kept", kept)
	}
	for _, v := range []any{i, *i, p, &p, p.Key, *p.Key, i.TLS(), kept, bundle(t, i), struct{ hidden *Key }{p.Key}, struct{ hidden *Identity }{i}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%x", "%s", "%d"} {
			fmt.Fprintf(&log, verb+"\n", v)
		}
	}
	for _, secret := range [][]byte{secret[:32], secret[32:]} {
		for _, shown := range []string{
			fmt.Sprintf("%x", secret[:9]), strings.Trim(fmt.Sprint(secret[:9]), "[]"), string(secret[:9]),
			strings.Trim(fmt.Sprintf("%#v", secret[:9]), "[]byte{}"), base64.StdEncoding.EncodeToString(secret[:9]),
		} {
			if strings.Contains(log.String(), shown) {
				t.Errorf("%q is shown", shown)
			}
		}
	}
	if !strings.Contains(log.String(), "identity of node "+i.Self.Node.String()) {
		t.Error("whose identity it is isn't shown")
	}
}

func TestWipe(t *testing.T) {
	folder := t.TempDir()
	kept := install(t, folder, build(t, parts(t, first(t))))
	i, _ := kept.Current()
	i.Wipe()
	i.Wipe()
	if !i.Key().wiped() || !i.secrets.mesh.IsZero() {
		t.Error("a secret is left")
	}
	if _, err := i.Key().Sign(nil, nil, &ed25519.Options{}); err == nil {
		t.Error("a wiped key signs")
	}
	if _, err := Install(t.TempDir(), i); err == nil {
		t.Error("a wiped identity was installed")
	}
	if !load(t, folder).Key().matches(i.Key().public) {
		t.Error("the key on the disk is another")
	}
}

func TestKey(t *testing.T) {
	k, again := newKeyOf(t, 2), newKeyOf(t, 2)
	fingerprint, err := pki.FingerprintOf(k.public)
	if err != nil || k.Fingerprint() != fingerprint || k.ID() != fingerprint.NodeID() || !again.matches(k.public) {
		t.Errorf("%s, %v", k.ID(), err)
	}
	signature, err := k.Sign(nil, []byte("x"), &ed25519.Options{})
	if err != nil || !ed25519.Verify(k.public, []byte("x"), signature) {
		t.Error(err)
	}
	if _, err := NewKey(strings.NewReader("short")); err == nil {
		t.Error("a key was made of too few bytes")
	}
}

func TestMarshal(t *testing.T) {
	i := build(t, parts(t, first(t)))
	text, err := json.Marshal(map[string]any{"i": i, "k": i.Key()})
	if want := `{"i":"` + i.String() + `","k":"` + placeholder + `"}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

// TestNames: the node's name is that of its ID, whatever others are called.
func TestNames(t *testing.T) {
	ca := first(t)
	p := parts(t, ca)
	body, err := membership.List{Nodes: []membership.Node{{Name: "home-2", ID: pki.NodeID{1}}, {Name: "home-1", ID: p.Key.ID()}}}.Encode()
	if bytes.Compare([]byte{1}, p.Key.fingerprint[:1]) > 0 {
		t.Fatal("the list isn't in order")
	}
	p.Membership = sign(t, ca, document.Membership, 9, body, err)
	if name := build(t, p).Name(); name != "home-1" {
		t.Errorf("%q", name)
	}
}
