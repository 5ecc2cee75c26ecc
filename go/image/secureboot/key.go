// Package secureboot makes the owner's key for UEFI Secure Boot, and signs EFI
// images with it.
//
// A signature is an Authenticode signature (Microsoft, "Windows Authenticode
// Portable Executable Signature Format") as section 32.2 of the UEFI
// specification 2.10 wants it: PKCS #7 with SHA-256 and RSA.
package secureboot

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

// minKeyBits is the size of the smallest key that is used.
const minKeyBits = 2048

// MaxFileSize is the size in bytes of the largest file with a key or a
// certificate that is read.
const MaxFileSize = 1 << 16

// Pair is a private key and its certificate. It has no method that shows the key.
type Pair struct {
	key         *rsa.PrivateKey
	certificate *x509.Certificate
}

// Certificate returns the certificate.
func (p *Pair) Certificate() *x509.Certificate { return p.certificate }

// ParsePair reads a private key, PKCS #8 or PKCS #1 in PEM, and its certificate,
// X.509 in PEM, as sb-keygen and openssl write them. It refuses a certificate
// that isn't valid at the time now; firmware doesn't look at that, but whoever
// signs with an expired certificate has the wrong file at hand. No error has any
// byte of the key.
func ParsePair(key, certificate []byte, now time.Time) (*Pair, error) {
	private, err := parseKey(key)
	if err != nil {
		return nil, fmt.Errorf("the Secure Boot key %w", err)
	}
	public, err := ParseCertificate(certificate)
	if err != nil {
		return nil, err
	}
	if !private.PublicKey.Equal(public.PublicKey) {
		return nil, errors.New("the Secure Boot key and the certificate don't belong together: give the db.key and the db.crt of one folder")
	}
	if now.Before(public.NotBefore) || now.After(public.NotAfter) {
		return nil, fmt.Errorf("the Secure Boot certificate is valid from %s to %s, not now: make a new key with tools/sb-keygen",
			public.NotBefore.Format(time.DateOnly), public.NotAfter.Format(time.DateOnly))
	}
	return &Pair{key: private, certificate: public}, nil
}

// ParseCertificate reads the certificate of an RSA key, X.509 in PEM.
func ParseCertificate(content []byte) (*x509.Certificate, error) {
	der, err := onlyBlock(content, "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("the Secure Boot certificate %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errors.New("the Secure Boot certificate is no X.509 certificate")
	}
	key, ok := certificate.PublicKey.(*rsa.PublicKey)
	if !ok || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("the Secure Boot certificate is for no RSA key of %d bits or more, as firmware needs it", minKeyBits)
	}
	return certificate, nil
}

// parseKey reads a private key.
func parseKey(content []byte) (*rsa.PrivateKey, error) {
	der, err := onlyBlock(content, "PRIVATE KEY", "RSA PRIVATE KEY", "ENCRYPTED PRIVATE KEY")
	if err != nil {
		return nil, err
	}
	if bytes.Contains(content, []byte("ENCRYPTED")) {
		return nil, errors.New("is encrypted: remove its passphrase with openssl pkey, on a disk that forgets")
	}
	// The parsers' own errors might quote what they found.
	var parsed any
	if parsed, err = x509.ParsePKCS8PrivateKey(der); err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(der); err != nil {
			return nil, errors.New("is no private key in PKCS #8 or PKCS #1")
		}
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok || key.N.BitLen() < minKeyBits {
		return nil, fmt.Errorf("is no RSA key of %d bits or more, as firmware needs it", minKeyBits)
	}
	return key, nil
}

// onlyBlock returns the content of the one PEM block that a file has, of one of
// the types.
func onlyBlock(content []byte, types ...string) ([]byte, error) {
	if len(content) > MaxFileSize {
		return nil, fmt.Errorf("has more than %d bytes", MaxFileSize)
	}
	block, rest := pem.Decode(content)
	if block == nil {
		return nil, errors.New("is not in PEM form")
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("is followed by something else")
	}
	for _, t := range types {
		if block.Type == t {
			return block.Bytes, nil
		}
	}
	return nil, fmt.Errorf("is in a file with a %s", block.Type)
}
