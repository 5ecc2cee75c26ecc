package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"math/big"
	"net"
	"net/url"
	"testing"

	"powercloud.unidatum.com/go/keys/keystest"
)

// sign signs a certificate with the authority's key, whatever is in it.
func sign(t testing.TB, ca *CA, template *x509.Certificate, key crypto.PublicKey) *x509.Certificate {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, template, ca.authority.certificate, key, ca.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// template returns what a certificate of the role is made of.
func template(t testing.TB, ca *CA, role Role) *x509.Certificate {
	t.Helper()
	bearer := Identity{Cluster: ca.authority.cluster, Role: role, Key: publicKey(2), Issued: issued(), Expires: issued().Add(role.lifetime())}
	if role == RoleNode {
		var err error
		if bearer.Node, err = NodeIDOf(bearer.Key); err != nil {
			t.Fatal(err)
		}
	}
	made, err := bearer.template(big.NewInt(7))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestSignedButRefused: that the authority has signed a certificate is not enough.
func TestSignedButRefused(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	name := func(path string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.URIs = []*url.URL{{Scheme: scheme, Host: ca.authority.cluster.String(), Path: path}}
		}
	}
	for title, change := range map[string]func(*x509.Certificate){
		"unknown role":      name("/operator"),
		"no role":           name("/"),
		"authority's name":  name("/ca"),
		"role and more":     name("/admin/2"),
		"node without ID":   name("/node"),
		"another node's ID": name("/node/262c2fdc861a9cf2"),
		"upper case":        name("/Node/262c2fdc861a9cf2"),
		"no name":           func(c *x509.Certificate) { c.URIs = nil },
		"two names":         func(c *x509.Certificate) { c.URIs = append(c.URIs, c.URIs[0]) },
		"another scheme":    func(c *x509.Certificate) { c.URIs[0].Scheme = "spiffe" },
		"query":             func(c *x509.Certificate) { c.URIs[0].RawQuery = "role=admin" },
		"another cluster":   func(c *x509.Certificate) { c.URIs[0].Host = otherCluster(ca.authority.cluster).String() },
		"no cluster":        func(c *x509.Certificate) { c.URIs[0].Host = "" },
		"no DNS name":       func(c *x509.Certificate) { c.DNSNames = nil },
		"another DNS name":  func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "example.net") },
		"IP address":        func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(192, 0, 2, 10)} },
		"email address":     func(c *x509.Certificate) { c.EmailAddresses = []string{"alex@example.net"} },
		"subject":           func(c *x509.Certificate) { c.Subject.CommonName = "admin" },
		"usage":             func(c *x509.Certificate) { c.KeyUsage |= x509.KeyUsageKeyAgreement },
		"no usage":          func(c *x509.Certificate) { c.KeyUsage = 0 },
		"server only":       func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] },
		"client only":       func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] },
		"any usage":         func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} },
		"code signing too": func(c *x509.Certificate) {
			c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageCodeSigning)
		},
		"unknown usage":      func(c *x509.Certificate) { c.UnknownExtKeyUsage = []asn1.ObjectIdentifier{{1, 2, 3}} },
		"authority":          func(c *x509.Certificate) { c.IsCA, c.KeyUsage = true, c.KeyUsage|x509.KeyUsageCertSign },
		"no constraint":      func(c *x509.Certificate) { c.BasicConstraintsValid = false },
		"key identifier":     func(c *x509.Certificate) { c.SubjectKeyId = []byte{1} },
		"no time":            func(c *x509.Certificate) { c.NotAfter = c.NotBefore.Add(Allowance) },
		"a second too long":  func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(1e9) },
		"a second too early": func(c *x509.Certificate) { c.NotBefore = c.NotBefore.Add(-1e9) },
		"extension": func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Value: []byte{5, 0}}}
		},
		"critical extension": func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 2, 3}, Critical: true, Value: []byte{5, 0}}}
		},
		"large":         func(c *x509.Certificate) { c.OCSPServer = []string{string(make([]byte, 2048))} },
		"serial number": func(c *x509.Certificate) { c.SerialNumber = new(big.Int).Lsh(big.NewInt(1), 128) },
	} {
		made := template(t, ca, RoleNode)
		if _, err := ca.Authority().Verify(sign(t, ca, made, publicKey(2)), issued()); err != nil {
			t.Fatalf("before it is changed: %v", err)
		}
		change(made)
		certificate := sign(t, ca, made, publicKey(2))
		if _, err := ca.Authority().Verify(certificate, issued()); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", title, err)
		}
		if _, err := ca.Authority().IdentifyNode(certificate); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: identified, %v", title, err)
		}
	}
}

func TestAdminForAYearIsRefused(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	made := template(t, ca, RoleAdmin)
	made.NotAfter = issued().Add(NodeLifetime)
	if _, err := ca.Authority().Verify(sign(t, ca, made, publicKey(2)), issued()); !errors.Is(err, ErrCertificate) {
		t.Error(err)
	}
}

func TestOtherAlgorithmsAreRefused(t *testing.T) {
	ca := newCA(t, keystest.First(t))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	certificate := sign(t, ca, template(t, ca, RoleAdmin), key.Public())
	if _, err := ca.Authority().Verify(certificate, issued()); !errors.Is(err, ErrCertificate) {
		t.Errorf("an ECDSA key: %v", err)
	}
	made, err := authorityTemplate(publicKey(2), keystest.First(t).ID)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, made, made, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseAuthority(der); err == nil {
		t.Error("an authority with an ECDSA key is accepted")
	}
}

// TestImpostors: certificates that name the authority and weren't signed by it.
func TestImpostors(t *testing.T) {
	first := keystest.First(t)
	ca, other := newCA(t, first), newCA(t, keystest.Second(t))
	impostor := &CA{authority: ca.authority, key: other.key}
	parent := *ca.authority.certificate
	parent.PublicKey = impostor.key.Public()
	der, err := x509.CreateCertificate(nil, template(t, ca, RoleNode), &parent, publicKey(2), impostor.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	for title, c := range map[string]*x509.Certificate{
		"another key":         certificate,
		"another authority's": issueNode(t, other, 2),
		"an authority":        other.authority.certificate,
		"the authority":       ca.authority.certificate,
	} {
		if _, err := ca.Authority().Verify(c, issued()); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", title, err)
		}
	}
	genuine := issueNode(t, ca, 2)
	for i := range genuine.Raw {
		altered := append([]byte(nil), genuine.Raw...)
		altered[i] ^= 1
		c, err := x509.ParseCertificate(altered)
		if err != nil {
			continue
		}
		if _, err := ca.Authority().Verify(c, issued()); err == nil {
			t.Errorf("byte %d altered: it was accepted", i)
		}
	}
}

func TestParseAuthorityRefuses(t *testing.T) {
	first := keystest.First(t)
	ca := newCA(t, first)
	for title, change := range map[string]func(*x509.Certificate){
		"ends":        func(c *x509.Certificate) { c.NotAfter = issued() },
		"begins":      func(c *x509.Certificate) { c.NotBefore = issued() },
		"name":        func(c *x509.Certificate) { c.URIs[0].Path = "/admin" },
		"no name":     func(c *x509.Certificate) { c.URIs = nil },
		"cluster":     func(c *x509.Certificate) { c.URIs[0].Host = otherCluster(first.ID).String() },
		"no cluster":  func(c *x509.Certificate) { c.URIs[0].Host = "x" },
		"subject":     func(c *x509.Certificate) { c.Subject.CommonName = "ca" },
		"no CA":       func(c *x509.Certificate) { c.IsCA = false },
		"longer path": func(c *x509.Certificate) { c.MaxPathLen, c.MaxPathLenZero = 1, false },
		"usage":       func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageCertSign },
		"serial":      func(c *x509.Certificate) { c.SerialNumber = big.NewInt(2) },
		"usages":      func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} },
		"large":       func(c *x509.Certificate) { c.OCSPServer = []string{string(make([]byte, 2048))} },
	} {
		made, err := authorityTemplate(ca.authority.key, first.ID)
		if err != nil {
			t.Fatal(err)
		}
		change(made)
		der, err := x509.CreateCertificate(nil, made, made, ca.authority.key, ca.key)
		if err != nil {
			continue // Not even Go makes one.
		}
		if _, err := ParseAuthority(der); err == nil {
			t.Errorf("%s: it was accepted", title)
		}
	}
	// As if the authority had been signed by another.
	made, err := authorityTemplate(ca.authority.key, first.ID)
	if err != nil {
		t.Fatal(err)
	}
	parent := *made
	parent.PublicKey = publicKey(3)
	der, err := x509.CreateCertificate(nil, made, &parent, ca.authority.key, privateKey(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ParseAuthority(der); err == nil {
		t.Error("signed by another key: it was accepted")
	}
}
