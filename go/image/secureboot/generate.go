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
	"regexp"
	"time"

	"golang.org/x/sys/unix"
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
// the owner can read the files. It doesn't overwrite a key, and then writes nothing.
//
// The key comes last, so that it is there only if its certificate is, and each file
// is there whole or not at all. A certificate without a key is what a run that was cut
// off has left: it is replaced.
func Generate(folder string, now time.Time) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	unlock, err := lock(folder)
	if err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	err = generateLocked(folder, now)
	return errors.Join(err, unlock())
}

// lock keeps a folder from other runs until the function that it returns is called, or
// the process ends: the certificate of one could otherwise come to the key of another.
func lock(folder string) (unlock func() error, err error) {
	opened, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(opened.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("%s is in use by another run: %w", folder, err), opened.Close())
	}
	return opened.Close, nil
}

// generateLocked is Generate for a folder that is there and locked.
func generateLocked(folder string, now time.Time) error {
	if _, err := os.Lstat(filepath.Join(folder, KeyFile)); err == nil {
		return fmt.Errorf("%s exists already, and is not overwritten: give another folder", filepath.Join(folder, KeyFile))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	if err := removeUnfinished(folder); err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	key, certificate, err := generate(now)
	if err != nil {
		return fmt.Errorf("make a Secure Boot key: %w", err)
	}
	// A rename replaces what was left; a link replaces nothing, not even a key that
	// something else has put there just now.
	for _, file := range []struct {
		name    string
		content []byte
		place   func(from, to string) error
	}{
		{EnrolFile, certificate, os.Rename},
		{CertificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}), os.Rename},
		{KeyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}), os.Link},
	} {
		if err := writeWhole(folder, file.name, file.content, file.place); err != nil {
			return fmt.Errorf("make a Secure Boot key: %w", err)
		}
	}
	return nil
}

// unfinished matches the names that writeWhole gives files at first.
var unfinished = regexp.MustCompile(`^\.db\.(key|crt|cer)\.[0-9]+$`)

// removeUnfinished removes the files that runs which were cut off had not finished:
// one may have a key that nothing will ever use.
func removeUnfinished(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if unfinished.MatchString(entry.Name()) {
			if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
				return err
			}
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

// writeWhole writes a file which only its owner can read, under another name at first;
// place gives it its own.
func writeWhole(folder, name string, content []byte, place func(from, to string) error) (err error) {
	// os.CreateTemp gives nobody else a right, whatever the umask.
	file, err := os.CreateTemp(folder, "."+name+".*")
	if err != nil {
		return err
	}
	defer func() {
		// After a rename it isn't there.
		if removal := os.Remove(file.Name()); err == nil && !errors.Is(removal, fs.ErrNotExist) {
			err = removal
		}
	}()
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := place(file.Name(), filepath.Join(folder, name)); err != nil {
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
