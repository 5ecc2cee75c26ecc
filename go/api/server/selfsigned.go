package server

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"time"
)

// SelfSigned returns a certificate that a node signs itself, for the time in which it
// has none of a cluster. Only its key counts, so that it has no name, and no time that
// a wrong clock could be outside of.
func SelfSigned(key crypto.Signer, random io.Reader) (*tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0),
		NotAfter:     time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
