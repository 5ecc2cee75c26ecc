package identity

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
	"powercloud.unidatum.com/go/sys/atomicfile"
)

// Kept is the identity that a node keeps in its state folder. It is safe for use by
// several goroutines at once: whoever reads it never waits for one that writes.
type Kept struct {
	directory string

	// replacing is held while a part is replaced.
	replacing sync.Mutex
	// unsaved are the files of lists that could not be written.
	unsaved map[string]bool

	mu      sync.Mutex
	current *Identity
	changed chan struct{}
}

func newKept(directory string, i *Identity) *Kept {
	return &Kept{directory: directory, unsaved: map[string]bool{}, current: i, changed: make(chan struct{})}
}

// Current returns the identity as it is, and a channel that is closed when another one
// is current.
func (k *Kept) Current() (*Identity, <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.current, k.changed
}

// set makes another identity the current one.
func (k *Kept) set(i *Identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = i
	close(k.changed)
	k.changed = make(chan struct{})
}

// write replaces a file of the identity.
func (k *Kept) write(name string, content []byte) error {
	return atomicfile.Write(filepath.Join(k.directory, name), content, fileMode)
}

// ReplaceCertificate replaces the node's certificate by a renewed one, and reports
// whether it is another. It must be one of the authority's for the node's key that is
// valid at a time, now, and the node must not be revoked. One that was issued earlier
// than the certificate that there is is refused with an error that wraps
// document.ErrOlder, if the latter is valid too: if not, it may have been issued by a
// clock that was ahead. So who has an old certificate of the node's, and may ask it,
// can't have it go back to that.
func (k *Kept) ReplaceCertificate(certificate *x509.Certificate, now time.Time) (changed bool, err error) {
	k.replacing.Lock()
	defer k.replacing.Unlock()
	current, _ := k.Current()
	next := *current
	if err := next.certify(certificate); err != nil {
		return false, err
	}
	if bytes.Equal(certificate.Raw, current.Certificate.Raw) {
		return false, nil
	}
	if _, err := next.Verify(certificate, now); err != nil {
		return false, fmt.Errorf("the new certificate: %w", err)
	}
	if next.Self.Issued.Before(current.Self.Issued) {
		if _, err := current.Authority.Verify(current.Certificate, now); err == nil {
			return false, fmt.Errorf("the certificate of %s is %w", next.Self, document.ErrOlder)
		}
	}
	if err := k.write(certificateFile, pki.MarshalCertificate(certificate)); err != nil {
		return false, fmt.Errorf("keeping the node's new certificate: %w", err)
	}
	k.set(&next)
	return true, nil
}

// ReplaceMembership replaces the signed membership list, and reports whether it is
// another. The authority must have signed it. One that is older than the list that
// there is is refused with an error that wraps document.ErrOlder. The list must not be
// changed afterwards.
//
// A list that can't be written counts all the same, as otherwise a full disk would keep
// what was revoked going. There is an error then, and the same list is to be given
// once more.
func (k *Kept) ReplaceMembership(signed []byte) (changed bool, err error) {
	return k.replaceList(membershipFile, signed, (*Identity).setMembership, func(i *Identity) *document.Document { return i.Membership })
}

// ErrRevokesLess is wrapped where a revocation list lacks what the one that there is
// revokes.
var ErrRevokesLess = errors.New("revokes less than the one that there is")

// ReplaceRevocations does for the revocation list what ReplaceMembership does for the
// membership list. A list that revokes the node itself is taken like any other. One that
// lacks something that is revoked is refused with an error that wraps ErrRevokesLess,
// whatever its serial: storage that was put back to an earlier state makes admins sign
// such lists, and who was removed would be trusted again.
func (k *Kept) ReplaceRevocations(signed []byte) (changed bool, err error) {
	return k.replaceList(revocationsFile, signed, (*Identity).replaceRevocations, func(i *Identity) *document.Document { return i.Revocations })
}

// replaceRevocations gives an identity a revocation list after the one that it has.
func (i *Identity) replaceRevocations(signed []byte) error {
	current, serial := i.Revoked, uint64(0)
	if i.Revocations != nil {
		serial = i.Revocations.Serial
	}
	if err := i.setRevocations(signed); err != nil {
		return err
	}
	// One that is older as well is refused as that.
	if i.Revocations.Serial >= serial && !i.Revoked.Covers(current) {
		return fmt.Errorf("the revocation list with serial %d %w", i.Revocations.Serial, ErrRevokesLess)
	}
	return nil
}

func (k *Kept) replaceList(name string, signed []byte, set func(*Identity, []byte) error, of func(*Identity) *document.Document) (bool, error) {
	k.replacing.Lock()
	defer k.replacing.Unlock()
	current, _ := k.Current()
	next := *current
	if err := set(&next, signed); err != nil {
		return false, err
	}
	newer, err := document.Newer(of(current), of(&next))
	if err != nil {
		return false, err
	}
	if newer {
		k.set(&next)
		k.unsaved[name] = true
	}
	if !k.unsaved[name] {
		return false, nil
	}
	if err := k.write(name, signed); err != nil {
		return newer, fmt.Errorf("keeping the %s: %w", of(&next).Kind, err)
	}
	delete(k.unsaved, name)
	return newer, nil
}
