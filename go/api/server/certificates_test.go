package server

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
)

// signed returns a certificate that nobody but its bearer has signed.
func signed(t *testing.T, key crypto.Signer, template *x509.Certificate) *tls.Certificate {
	t.Helper()
	template.SerialNumber = big.NewInt(1)
	template.NotAfter = now().AddDate(1, 0, 0)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestOddCertificates connects with certificates that no member has. The client hears
// that they aren't accepted, and others are answered.
func TestOddCertificates(t *testing.T) {
	c := newCluster(t, keystest.First(t))
	_, address := start(t, modes(t, c, new(revocation.List))[route.Open], DefaultLimits())
	admin := c.admin(now())
	name, err := url.Parse("powercloud://" + keystest.First(t).ID.String() + "/admin")
	if err != nil {
		t.Fatal(err)
	}
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	ecdsaKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	large := pkix.Extension{Id: []int{1, 2, 3}, Value: make([]byte, 60_000)}
	many := signed(t, newKey(t), &x509.Certificate{URIs: []*url.URL{name}})
	for range 100 {
		many.Certificate = append(many.Certificate, many.Certificate[0])
	}
	bad := signed(t, newKey(t), new(x509.Certificate))
	bad.Certificate[0] = append([]byte(nil), bad.Certificate[0][:40]...)
	names := make([]string, 2000)
	for i := range names {
		names[i] = strings.Repeat("a.", 10) + "example"
	}
	stolen := &tls.Certificate{Certificate: admin.Certificate, PrivateKey: newKey(t)}
	for name, certificate := range map[string]*tls.Certificate{
		"the admin's name": signed(t, newKey(t), &x509.Certificate{URIs: []*url.URL{name}}),
		"RSA":              signed(t, rsaKey, &x509.Certificate{URIs: []*url.URL{name}}),
		"ECDSA":            signed(t, ecdsaKey, &x509.Certificate{URIs: []*url.URL{name}}),
		"a large one":      signed(t, newKey(t), &x509.Certificate{URIs: []*url.URL{name}, ExtraExtensions: []pkix.Extension{large}}),
		"many names":       signed(t, newKey(t), &x509.Certificate{DNSNames: names}),
		"many":             many,
		"no DER":           bad,
		"another's":        stolen,
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			secure := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return certificate, nil
			}})
			if err = secure.Handshake(); err == nil {
				_, err = secure.Read(make([]byte, 1))
			}
			if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") {
				t.Errorf("the client hears %v", err)
			}
		})
	}
	info := route.GetInfo()
	if status, answer, err := ask(address, admin, nil, info.Method, info.Path, nil); err != nil || status != http.StatusOK {
		t.Errorf("an admin: %d %q, %v", status, answer, err)
	}
}
