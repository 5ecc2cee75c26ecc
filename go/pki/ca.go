package pki

import (
	"crypto"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/url"
	"time"

	"powercloud.unidatum.com/go/keys"
)

// CA is a cluster's certificate authority with its private key. Only pcctl ever
// has one. Its methods may be called concurrently, except that Wipe must come after
// all others.
type CA struct {
	authority *Authority
	key       ed25519.PrivateKey
}

// NewCA returns the authority of the cluster with the given root key. The caller
// wipes it.
func NewCA(root *keys.Root, cluster keys.ClusterID) (*CA, error) {
	seed := root.Derive(keys.PurposeAuthority)
	defer clear(seed)
	key := ed25519.NewKeyFromSeed(seed)
	authority, err := selfSign(key, cluster)
	if err != nil {
		clear(key)
		return nil, fmt.Errorf("making the certificate of the cluster's authority: %w", err)
	}
	return &CA{authority: authority, key: key}, nil
}

// Wipe overwrites the private key.
func (c *CA) Wipe() { clear(c.key) }

// Format writes a placeholder whatever the verb, so that no log line or error
// shows the key.
func (c *CA) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, "pki.CA(secret)")
}

// Authority returns the part that is no secret.
func (c *CA) Authority() *Authority { return c.authority }

// selfSign makes the certificate of a cluster's authority. The same key and cluster
// give the same bytes: there is nothing random in it, nor any time of making.
func selfSign(key ed25519.PrivateKey, cluster keys.ClusterID) (*Authority, error) {
	public := key.Public().(ed25519.PublicKey)
	template, err := authorityTemplate(public, cluster)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(nil, template, template, public, key)
	if err != nil {
		return nil, err
	}
	return ParseAuthority(der)
}

// authorityTemplate is what the certificate of an authority must be like.
func authorityTemplate(key ed25519.PublicKey, cluster keys.ClusterID) (*x509.Certificate, error) {
	fingerprint, err := FingerprintOf(key)
	if err != nil {
		return nil, err
	}
	id, err := keyID(key)
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      subject(cluster, "ca "+fingerprint.Short()),
		// Long before any clock of a node can be. The end is that of RFC 5280,
		// 4.1.2.5, for "no end".
		NotBefore:             time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:              time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
		SubjectKeyId:          id,
		URIs:                  []*url.URL{{Scheme: scheme, Host: cluster.String(), Path: "/ca"}},
	}, nil
}

// subject returns a certificate's subject. It is for people: nothing is read from it.
func subject(cluster keys.ClusterID, name string) pkix.Name {
	return pkix.Name{Organization: []string{"PowerCloud cluster " + cluster.String()}, CommonName: name}
}

// keyID returns the subject key identifier of a key: method 1 of RFC 7093. Go's own
// choice differs between its versions.
func keyID(key ed25519.PublicKey) ([]byte, error) {
	if len(key) != ed25519.PublicKeySize {
		return nil, errors.New("pki: an Ed25519 public key has 32 bytes")
	}
	sum := sha256.Sum256(key)
	return sum[:20], nil
}

// IssueAdmin issues a certificate for an admin's public key, valid for
// AdminLifetime from now. random must be a cryptographically secure source.
func (c *CA) IssueAdmin(key ed25519.PublicKey, now time.Time, random io.Reader) (*x509.Certificate, error) {
	return c.issue(Identity{Cluster: c.authority.cluster, Role: RoleAdmin, Key: key}, now, AdminLifetime, random)
}

// IssueNode issues a certificate for a node's public key, valid for a lifetime from
// now, which is NodeLifetime but in tests, and at least a second. random must be a
// cryptographically secure source.
func (c *CA) IssueNode(key ed25519.PublicKey, now time.Time, lifetime time.Duration, random io.Reader) (*x509.Certificate, error) {
	if lifetime < time.Second || lifetime > NodeLifetime {
		return nil, fmt.Errorf("a node's certificate can't be valid for %s, only for 1s to %s", lifetime, NodeLifetime)
	}
	node, err := NodeIDOf(key)
	if err != nil {
		return nil, err
	}
	return c.issue(Identity{Cluster: c.authority.cluster, Role: RoleNode, Node: node, Key: key}, now, lifetime, random)
}

func (c *CA) issue(bearer Identity, now time.Time, lifetime time.Duration, random io.Reader) (*x509.Certificate, error) {
	serial, err := serialNumber(random)
	if err != nil {
		return nil, err
	}
	bearer.Issued = now.UTC().Truncate(time.Second)
	bearer.Expires = bearer.Issued.Add(lifetime.Truncate(time.Second))
	template, err := bearer.template(serial)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(nil, template, c.authority.certificate, bearer.Key, c.key)
	if err != nil {
		return nil, fmt.Errorf("issuing a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate just issued: %w", err)
	}
	// Nothing is handed out that would be refused, whatever the clock says.
	if _, err := c.authority.authenticate(certificate); err != nil {
		return nil, fmt.Errorf("checking the certificate just issued: %w", err)
	}
	return certificate, nil
}

// serialNumber returns a positive number of 126 random bits and a leading one, so
// that all have 16 bytes.
func serialNumber(random io.Reader) (*big.Int, error) {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("reading random bytes for a serial number: %w", err)
	}
	b[0] = b[0]&0x3f | 0x40
	return new(big.Int).SetBytes(b[:]), nil
}

// template is what the certificate of an identity must be like.
func (i Identity) template(serial *big.Int) (*x509.Certificate, error) {
	id, err := keyID(i.Key)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject(i.Cluster, i.String()),
		NotBefore:             i.Issued.Add(-Allowance),
		NotAfter:              i.Expires,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           i.Role.usages(),
		BasicConstraintsValid: true,
		SubjectKeyId:          id,
		URIs:                  []*url.URL{i.uri()},
	}
	if i.Role == RoleNode {
		t.DNSNames = []string{ServerName(i.Cluster, i.Node)}
	}
	return t, nil
}

// documentContext keeps signatures of documents apart from those of certificates.
const documentContext = "powercloud v1 signed document"

// SignDocument signs the bytes of a document, for package document alone: Ed25519ctx
// (RFC 8032) with the context "powercloud v1 signed document", which no signature of
// a certificate can be taken for, nor the other way round.
func (c *CA) SignDocument(message []byte) ([]byte, error) {
	return c.key.Sign(nil, message, documentOptions())
}

// VerifyDocument reports whether the authority signed the bytes of a document.
func (a *Authority) VerifyDocument(message, signature []byte) bool {
	return ed25519.VerifyWithOptions(a.key, message, signature, documentOptions()) == nil
}

func documentOptions() *ed25519.Options {
	return &ed25519.Options{Hash: crypto.Hash(0), Context: documentContext}
}
