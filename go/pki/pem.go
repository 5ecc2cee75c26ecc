package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
)

// The types of PEM blocks (RFC 7468).
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// maxPEM is the size in bytes that no file of one certificate or key exceeds.
const maxPEM = 2 * MaxCertificate

// MarshalCertificate returns a certificate in PEM.
func MarshalCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw})
}

// ParseCertificate reads what MarshalCertificate writes and nothing else: one
// certificate, without headers or text around it. What is in the certificate isn't
// looked at; see Authority.
func ParseCertificate(text []byte) (*x509.Certificate, error) {
	der, err := parsePEM(text, certificateBlock)
	if err != nil {
		return nil, err
	}
	if len(der) > MaxCertificate {
		return nil, fmt.Errorf("the certificate is larger than %d bytes", MaxCertificate)
	}
	return x509.ParseCertificate(der)
}

// MarshalKey returns a private key in PEM, as PKCS #8 (RFC 5958, RFC 8410). The
// caller clears it after use.
func MarshalKey(key ed25519.PrivateKey) ([]byte, error) {
	if len(key) != ed25519.PrivateKeySize {
		return nil, errors.New("an Ed25519 private key has 64 bytes")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// ParseKey reads what MarshalKey writes and nothing else. Its errors show nothing
// of the text.
func ParseKey(text []byte) (ed25519.PrivateKey, error) {
	der, err := parsePEM(text, keyBlock)
	if err != nil {
		return nil, err
	}
	defer clear(der)
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("the private key isn't in PKCS #8")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("the private key isn't for Ed25519")
	}
	again, err := MarshalKey(key)
	if err != nil {
		return nil, err
	}
	defer clear(again)
	if !bytes.Equal(again, text) {
		clear(key)
		return nil, errors.New("the private key has something besides the key")
	}
	return key, nil
}

// parsePEM returns what is in the text's only block.
func parsePEM(text []byte, kind string) ([]byte, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("it is larger than %d bytes", maxPEM)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind || !bytes.Equal(pem.EncodeToMemory(block), text) {
		return nil, fmt.Errorf("it isn't one PEM block of the type %q and nothing else", kind)
	}
	return block.Bytes, nil
}
