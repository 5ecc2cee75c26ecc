// Package credentials keeps this machine's admin certificate: admin.crt, its private
// key admin.key, and the certificate of the cluster's authority, ca.crt, in pcctl's
// configuration directory.
//
// The three are replaced together. New ones are first written beside the old, admin.crt
// last, and then take their names, admin.crt last again. So the new admin.crt under its
// other name says that all are there: whoever finds it after an interruption completes
// the replacement, and without it the old ones are still whole.
package credentials

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/pki"
)

// The files.
const (
	keyFile         = "admin.key"
	certificateFile = "admin.crt"
	authorityFile   = "ca.crt"
	// pending ends the names of files that are about to take the place of others.
	pending = ".new"
)

// maxFile is the size in bytes that none of the files exceeds.
const maxFile = 4096

// RenewWithin is how long before its end a certificate is renewed by a command that
// could do so.
const RenewWithin = 7 * 24 * time.Hour

// Faults of credentials. What is to be done is always the same.
var (
	// ErrNone says that this machine has no admin certificate.
	ErrNone = errors.New("no admin credentials (run 'pcctl --repo ... login')")
	// ErrExpired says that the admin certificate has expired.
	ErrExpired = errors.New("admin certificate expired (run 'pcctl --repo ... login')")
	// ErrDamaged says that the files don't belong together, or aren't what their
	// names say. The error that wraps it says which.
	ErrDamaged = errors.New("admin credentials are damaged (run 'pcctl --repo ... login')")
)

// Credentials are an admin's certificate and what belongs to it.
type Credentials struct {
	// Authority is the authority that issued the certificate.
	Authority *pki.Authority
	// Certificate is the admin's certificate, Key its private key.
	Certificate *x509.Certificate
	Key         ed25519.PrivateKey
	// Identity is what the certificate says.
	Identity pki.Identity
}

// Load returns the credentials in a configuration directory, which may have expired:
// see Check. Errors wrap ErrNone or ErrDamaged, or say why a file can't be read.
func Load(dir configuration.Directory) (*Credentials, error) {
	interrupted, err := dir.Has(certificateFile + pending)
	if err != nil {
		return nil, err
	}
	if !interrupted {
		// Without the lock, so that a directory can be read that can't be written. A
		// replacement that happens meanwhile looks like damage.
		c, err := read(dir)
		if !errors.Is(err, ErrDamaged) {
			return c, err
		}
	}
	unlock, err := dir.Lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := complete(dir); err != nil {
		return nil, err
	}
	return read(dir)
}

// read reads the files as they are.
func read(dir configuration.Directory) (*Credentials, error) {
	has, err := dir.Has(certificateFile)
	if err != nil {
		return nil, err
	}
	if !has {
		return nil, ErrNone
	}
	var texts [3][]byte
	for i, name := range []string{authorityFile, certificateFile, keyFile} {
		texts[i], err = dir.Read(name, maxFile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: there is no %s", ErrDamaged, name)
		}
		if err != nil {
			return nil, err
		}
	}
	defer clear(texts[2])
	c, err := parse(texts[0], texts[1], texts[2])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return c, nil
}

// parse makes credentials of the files' texts.
func parse(authority, certificate, key []byte) (*Credentials, error) {
	var c Credentials
	parsed, err := pki.ParseCertificate(authority)
	if err == nil {
		c.Authority, err = pki.NewAuthority(parsed)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authorityFile, err)
	}
	if c.Certificate, err = pki.ParseCertificate(certificate); err != nil {
		return nil, fmt.Errorf("%s: %w", certificateFile, err)
	}
	// At a time when it is valid: whether it is now is another question.
	if c.Identity, err = c.Authority.Verify(c.Certificate, c.Certificate.NotAfter); err != nil {
		return nil, fmt.Errorf("%s: %w", certificateFile, err)
	}
	if c.Identity.Role != pki.RoleAdmin {
		return nil, fmt.Errorf("%s: it is of a %s", certificateFile, c.Identity)
	}
	if c.Key, err = pki.ParseKey(key); err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	if !c.Identity.Key.Equal(c.Key.Public()) {
		clear(c.Key)
		return nil, fmt.Errorf("%s is not the key of %s", keyFile, certificateFile)
	}
	return &c, nil
}

// Check returns ErrExpired if the certificate has expired.
func (c *Credentials) Check(now time.Time) error {
	if now.After(c.Identity.Expires) {
		return ErrExpired
	}
	return nil
}

// Authority returns the authority in a configuration directory, whatever else is
// there. Without one the error wraps ErrNone.
func Authority(dir configuration.Directory) (*pki.Authority, error) {
	text, err := dir.Read(authorityFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, err
	}
	parsed, err := pki.ParseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, authorityFile, err)
	}
	authority, err := pki.NewAuthority(parsed)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrDamaged, authorityFile, err)
	}
	return authority, nil
}

// Issue makes a new key, has the authority certify it for an admin, and puts both in
// the place of the credentials that there are. The key is always new: who has the old
// one must not be able to use a certificate that is issued after the old was revoked.
// random must be a cryptographically secure source.
func Issue(dir configuration.Directory, ca *pki.CA, now time.Time, random io.Reader) error {
	steps, err := replacement(dir, ca, now, random)
	if err != nil {
		return err
	}
	unlock, err := dir.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	// What an earlier replacement has left is completed first, so that its files
	// aren't mixed with these.
	if err := complete(dir); err != nil {
		return err
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("writing the admin credentials: %w", err)
		}
	}
	return nil
}

// replacement returns the steps that put new credentials in the place of the old.
// After any number of them there are either the old or the new ones.
func replacement(dir configuration.Directory, ca *pki.CA, now time.Time, random io.Reader) ([]func() error, error) {
	seed := make([]byte, ed25519.SeedSize)
	defer clear(seed)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("reading random bytes for the admin's key: %w", err)
	}
	key := ed25519.NewKeyFromSeed(seed)
	defer clear(key)
	certificate, err := ca.IssueAdmin(key.Public().(ed25519.PublicKey), now, random)
	if err != nil {
		return nil, err
	}
	keyText, err := pki.MarshalKey(key)
	if err != nil {
		return nil, err
	}
	write := func(name string, text []byte) func() error {
		return func() error { return dir.Write(name+pending, text) }
	}
	return append([]func() error{
		write(keyFile, keyText),
		write(authorityFile, pki.MarshalCertificate(ca.Authority().Certificate())),
		write(certificateFile, pki.MarshalCertificate(certificate)),
	}, completion(dir)...), nil
}

// completion returns the steps that give pending files their names.
func completion(dir configuration.Directory) []func() error {
	var steps []func() error
	for _, name := range []string{keyFile, authorityFile, certificateFile} {
		steps = append(steps, func() error {
			// Some may have their names already.
			if has, err := dir.Has(name + pending); err != nil || !has {
				return err
			}
			return dir.Rename(name+pending, name)
		})
	}
	return steps
}

// complete completes a replacement that was interrupted. The caller has the lock.
func complete(dir configuration.Directory) error {
	if has, err := dir.Has(certificateFile + pending); err != nil || !has {
		return err
	}
	for _, step := range completion(dir) {
		if err := step(); err != nil {
			return fmt.Errorf("completing the replacement of the admin credentials: %w", err)
		}
	}
	return nil
}

// Exist reports whether a configuration directory has credentials, of whatever state.
func Exist(dir configuration.Directory) (bool, error) { return dir.Has(certificateFile) }

// Due reports whether a configuration directory has a certificate of this authority
// that has RenewWithin left or less. Where there are no credentials, or those of
// another authority, nothing is due.
func Due(dir configuration.Directory, authority *pki.Authority, now time.Time) (bool, error) {
	if has, err := Exist(dir); err != nil || !has {
		return false, err
	}
	c, err := Load(dir)
	if err != nil {
		return false, err
	}
	defer clear(c.Key)
	if c.Authority.Fingerprint() != authority.Fingerprint() {
		return false, nil
	}
	return c.Identity.Expires.Sub(now) <= RenewWithin, nil
}

// TLS returns the certificate and its key as package crypto/tls wants them.
func (c *Credentials) TLS() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{c.Certificate.Raw}, PrivateKey: c.Key, Leaf: c.Certificate}
}
