package secureboot

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // the name of a key, no protection of anything
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// The files of a key.
const (
	// KeyFile is the private key, PKCS #8 in PEM.
	KeyFile = "db.key"
	// CertificateFile is the certificate in PEM, for signing.
	CertificateFile = "db.crt"
	// EnrolFile is the certificate in DER, for firmware.
	EnrolFile = "db.cer"
)

// validYears is how long a certificate is valid. Firmware doesn't check it, and
// a machine in a cellar should not need new images for that.
const validYears = 20

// Generate makes an RSA-2048 key and its self-signed certificate, valid for 20
// years from now, and writes them to the folder, which it makes if need be. Only
// the owner can read the files. It overwrites none: if one of the three exists,
// it writes nothing. A file is there whole or not at all, and the key is there
// only if the other two are.
func Generate(folder string, now time.Time) error {
	for _, name := range []string{KeyFile, CertificateFile, EnrolFile} {
		if _, err := os.Lstat(filepath.Join(folder, name)); err == nil {
			return fmt.Errorf("%s exists already, and is not overwritten: give another folder", filepath.Join(folder, name))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("make a Secure Boot key: %w", err)
		}
	}
	key, certificate, err := generate(now)
	if err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	for _, file := range []struct {
		name    string
		content []byte
	}{
		{EnrolFile, certificate},
		{CertificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})},
		{KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})},
	} {
		if err := writeNew(folder, file.name, file.content); err != nil {
			return fmt.Errorf("make a Secure Boot key: %w", err)
		}
	}
	return nil
}

// generate returns a key in PKCS #8 and its certificate, both in DER.
func generate(now time.Time) (key, certificate []byte, err error) {
	private, err := rsa.GenerateKey(rand.Reader, minKeyBits)
	if err != nil {
		return nil, nil, err
	}
	// A positive number of at most 20 bytes (RFC 5280, section 4.1.2.2).
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	name := sha1.Sum(x509.MarshalPKCS1PublicKey(&private.PublicKey)) //nolint:gosec // as above
	template := &x509.Certificate{
		SerialNumber:          serial.Add(serial, big.NewInt(1)),
		Subject:               pkix.Name{CommonName: "PowerCloud Secure Boot"},
		NotBefore:             now.UTC().Truncate(time.Second),
		NotAfter:              now.UTC().Truncate(time.Second).AddDate(validYears, 0, 0),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		SubjectKeyId:          name[:],
		BasicConstraintsValid: true,
		SignatureAlgorithm:    x509.SHA256WithRSA,
	}
	certificate, err = x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return key, certificate, err
}

// writeNew writes a file that isn't there yet, which only its owner can read.
func writeNew(folder, name string, content []byte) (err error) {
	// os.CreateTemp gives nobody else a right, whatever the umask.
	file, err := os.CreateTemp(folder, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() {
		if removal := os.Remove(file.Name()); err == nil {
			err = removal
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	// Unlike a rename, a link replaces nothing that came in between.
	if err := os.Link(file.Name(), filepath.Join(folder, name)); err != nil {
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes what happened to names in a folder last.
func syncFolder(folder string) error {
	opened, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
