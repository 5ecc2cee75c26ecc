package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"slices"
	"time"

	"powercloud.unidatum.com/go/keys"
)

// Authority recognises what a cluster's certificate authority has signed. It is no
// secret, and doesn't change: it may be used by several goroutines at once.
type Authority struct {
	certificate *x509.Certificate
	roots       *x509.CertPool
	cluster     keys.ClusterID
	key         ed25519.PublicKey
	fingerprint Fingerprint
}

// ParseAuthority reads the certificate of an authority in DER. It accepts what
// CA.Authority's Certificate is like and nothing else. Anybody can make one: the
// caller must have it from where only the cluster can have put it, or compare its
// fingerprint.
func ParseAuthority(der []byte) (*Authority, error) {
	if len(der) > MaxCertificate {
		return nil, errAuthority(fmt.Errorf("it is larger than %d bytes", MaxCertificate))
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errAuthority(err)
	}
	return NewAuthority(certificate)
}

// NewAuthority is ParseAuthority for a certificate that is parsed.
func NewAuthority(certificate *x509.Certificate) (*Authority, error) {
	key, err := ed25519Key(certificate)
	if err != nil {
		return nil, errAuthority(err)
	}
	if len(certificate.URIs) != 1 {
		return nil, errAuthority(fmt.Errorf("it has %d names", len(certificate.URIs)))
	}
	cluster, err := keys.ParseClusterID(certificate.URIs[0].Host)
	if err != nil {
		return nil, errAuthority(err)
	}
	template, err := authorityTemplate(key, cluster)
	if err != nil {
		return nil, errAuthority(err)
	}
	if err := compare(certificate, template); err != nil {
		return nil, errAuthority(err)
	}
	if err := certificate.CheckSignatureFrom(certificate); err != nil {
		return nil, errAuthority(err)
	}
	fingerprint, err := FingerprintOf(key)
	if err != nil {
		return nil, errAuthority(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(certificate)
	return &Authority{certificate: certificate, roots: roots, cluster: cluster, key: key, fingerprint: fingerprint}, nil
}

func errAuthority(err error) error {
	return fmt.Errorf("not the certificate of a cluster's authority: %w", err)
}

// Certificate returns the authority's certificate. It must not be changed.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate }

// Cluster returns the ID of the authority's cluster.
func (a *Authority) Cluster() keys.ClusterID { return a.cluster }

// Fingerprint returns the fingerprint of the authority's public key.
func (a *Authority) Fingerprint() Fingerprint { return a.fingerprint }

// Verify returns whose certificate this is, if the authority has issued it and it is
// valid at a time. Its errors wrap ErrCertificate, ErrExpired or ErrNotYetValid; the
// last two say that all but the time is right. Whether the bearer has the key is for
// TLS to find out, and whether the certificate was revoked for the revocation list.
func (a *Authority) Verify(certificate *x509.Certificate, at time.Time) (Identity, error) {
	bearer, err := a.authenticate(certificate)
	switch {
	case err != nil:
		return Identity{}, err
	case at.Before(certificate.NotBefore):
		return Identity{}, fmt.Errorf("%w: %s, from %s on", ErrNotYetValid, bearer, timestamp(certificate.NotBefore))
	case at.After(certificate.NotAfter):
		return Identity{}, fmt.Errorf("%w: %s, on %s", ErrExpired, bearer, timestamp(certificate.NotAfter))
	}
	return bearer, nil
}

// IdentifyNode returns which node's certificate this is, if the authority has issued
// it, whenever it is or was valid. It is for renewing a node's certificate, and for
// saying whose has expired: that takes the node's key, of which an expired certificate
// tells as well. Nobody is to be trusted with anything by it. The certificate of an
// admin is refused. Errors wrap ErrCertificate.
func (a *Authority) IdentifyNode(certificate *x509.Certificate) (Identity, error) {
	bearer, err := a.authenticate(certificate)
	if err != nil {
		return Identity{}, err
	}
	if bearer.Role != RoleNode {
		return Identity{}, fmt.Errorf("%w: its role is %s instead of %s", ErrCertificate, bearer.Role, RoleNode)
	}
	return bearer, nil
}

// authenticate is Verify without regard to the time.
func (a *Authority) authenticate(certificate *x509.Certificate) (Identity, error) {
	if len(certificate.Raw) > MaxCertificate {
		return Identity{}, fmt.Errorf("%w: it is larger than %d bytes", ErrCertificate, MaxCertificate)
	}
	// Before anything in it is believed.
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots:       a.roots,
		CurrentTime: certificate.NotBefore,
		KeyUsages:   []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %v", ErrCertificate, err)
	}
	key, err := ed25519Key(certificate)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	bearer, err := a.identity(certificate, key)
	if err != nil {
		return Identity{}, err
	}
	template, err := bearer.template(nil)
	if err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	if err := compare(certificate, template); err != nil {
		return Identity{}, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	if !bytes.Equal(certificate.AuthorityKeyId, a.certificate.SubjectKeyId) {
		return Identity{}, fmt.Errorf("%w: it names another authority's key", ErrCertificate)
	}
	return bearer, nil
}

// identity reads what the certificate says of its bearer.
func (a *Authority) identity(certificate *x509.Certificate, key ed25519.PublicKey) (Identity, error) {
	if len(certificate.URIs) != 1 {
		return Identity{}, fmt.Errorf("%w: it has %d names instead of one", ErrCertificate, len(certificate.URIs))
	}
	bearer, err := parseURI(certificate.URIs[0])
	if err != nil {
		return Identity{}, err
	}
	bearer.Key = key
	bearer.Issued = certificate.NotBefore.Add(Allowance).UTC()
	bearer.Expires = certificate.NotAfter.UTC()
	lifetime := bearer.Expires.Sub(bearer.Issued)
	switch {
	case bearer.Cluster != a.cluster:
		return Identity{}, fmt.Errorf("%w: it names another, %s", ErrCertificate, bearer.Cluster)
	case lifetime <= 0 || lifetime > bearer.Role.lifetime():
		return Identity{}, fmt.Errorf("%w: it is for %s", ErrCertificate, lifetime)
	}
	if bearer.Role == RoleNode {
		if node, err := NodeIDOf(key); err != nil || node != bearer.Node {
			return Identity{}, fmt.Errorf("%w: its key is not that of node %s", ErrCertificate, bearer.Node)
		}
	}
	return bearer, nil
}

// ed25519Key returns a certificate's public key, if both it and the signature are
// Ed25519's.
func ed25519Key(certificate *x509.Certificate) (ed25519.PublicKey, error) {
	key, ok := certificate.PublicKey.(ed25519.PublicKey)
	switch {
	case !ok:
		return nil, fmt.Errorf("its key is %s instead of Ed25519", certificate.PublicKeyAlgorithm)
	case certificate.SignatureAlgorithm != x509.PureEd25519:
		return nil, fmt.Errorf("its signature is %s instead of Ed25519", certificate.SignatureAlgorithm)
	}
	return key, nil
}

// compare returns what in a certificate isn't as in the template that it must have
// been made of. The template's serial number is nil where any will do.
func compare(certificate, template *x509.Certificate) error {
	subject, err := asn1.Marshal(template.Subject.ToRDNSequence())
	if err != nil {
		return err
	}
	serial := certificate.SerialNumber
	differs := func(field string) error { return errors.New("its " + field + " is not as it must be") }
	switch {
	case certificate.Version != 3:
		return differs("version")
	case serial.Sign() <= 0 || serial.BitLen() > 127 || template.SerialNumber != nil && serial.Cmp(template.SerialNumber) != 0:
		return differs("serial number")
	case !bytes.Equal(certificate.RawSubject, subject):
		return differs("subject")
	case !certificate.NotBefore.Equal(template.NotBefore) || !certificate.NotAfter.Equal(template.NotAfter):
		return differs("validity")
	case certificate.KeyUsage != template.KeyUsage || len(certificate.UnknownExtKeyUsage) > 0 ||
		!slices.Equal(certificate.ExtKeyUsage, template.ExtKeyUsage):
		return differs("key usage")
	case !certificate.BasicConstraintsValid || certificate.IsCA != template.IsCA || certificate.MaxPathLenZero != template.MaxPathLenZero:
		return differs("basic constraint")
	case !bytes.Equal(certificate.SubjectKeyId, template.SubjectKeyId):
		return differs("key identifier")
	case certificate.URIs[0].String() != template.URIs[0].String() || !slices.Equal(certificate.DNSNames, template.DNSNames) ||
		len(certificate.IPAddresses)+len(certificate.EmailAddresses) > 0:
		return differs("alternative name")
	case !slices.Equal(extensions(certificate), extensionsOf(template)):
		return differs("list of extensions")
	}
	return nil
}

// extensions returns the identifiers of a certificate's extensions, sorted.
func extensions(certificate *x509.Certificate) []string {
	var list []string
	for _, extension := range certificate.Extensions {
		list = append(list, extension.Id.String())
	}
	slices.Sort(list)
	return list
}

// The identifiers of the extensions of RFC 5280.
const (
	subjectKeyIdentifier   = "2.5.29.14"
	keyUsage               = "2.5.29.15"
	subjectAlternativeName = "2.5.29.17"
	basicConstraints       = "2.5.29.19"
	authorityKeyIdentifier = "2.5.29.35"
	extendedKeyUsage       = "2.5.29.37"
)

// extensionsOf returns the extensions of a certificate made of a template, sorted.
func extensionsOf(template *x509.Certificate) []string {
	list := []string{subjectKeyIdentifier, keyUsage, subjectAlternativeName, basicConstraints}
	if !template.IsCA {
		list = append(list, authorityKeyIdentifier, extendedKeyUsage)
	}
	return list
}

// timestamp shows a time in an error.
func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }
