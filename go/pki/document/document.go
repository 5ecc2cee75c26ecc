// Package document is the envelope of the documents that a cluster's authority signs
// and its nodes pass on: the membership and revocation lists, the release, the app
// set and the founding of the consensus group.
//
// An envelope says what kind of document it holds, of which cluster, and its serial,
// which grows with every version. Nothing of the body is looked at before the
// signature was checked. A node keeps the newest document of each kind and refuses
// an older one, so that what was published can't be taken back by showing what came
// before. docs/formats.md states every byte.
package document

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

const (
	magic = "PCsignd1"
	// fixed is the size of everything before the body.
	fixed = len(magic) + 1 + 16 + 8 + 4

	// MaxBody is the largest size of a body in bytes.
	MaxBody = 1 << 20
	// MaxSize is the largest size of a signed document in bytes.
	MaxSize = fixed + MaxBody + ed25519.SignatureSize
)

// Kind is what a document is about.
type Kind uint8

// The kinds of documents.
const (
	// Membership is the list of the cluster's nodes.
	Membership Kind = 1
	// Revocations is the list of what was revoked.
	Revocations Kind = 2
	// Release is the system that nodes are to run.
	Release Kind = 3
	// Apps is the set of the cluster's apps.
	Apps Kind = 4
	// Founding is the founding of the consensus group.
	Founding Kind = 5
)

// String names the kind.
func (k Kind) String() string {
	switch k {
	case Membership:
		return "membership list"
	case Revocations:
		return "revocation list"
	case Release:
		return "release"
	case Apps:
		return "app set"
	case Founding:
		return "founding"
	}
	return fmt.Sprintf("document of kind %d", uint8(k))
}

// known tells whether the kind is one of those above.
func (k Kind) known() bool { return k >= Membership && k <= Founding }

// Faults of documents. Errors that wrap them say more.
var (
	// ErrDocument says that the bytes are not a document that the authority signed,
	// of the kind that was asked for.
	ErrDocument = errors.New("bad signed document")
	// ErrOlder says that a document is older than another.
	ErrOlder = errors.New("older than the one there is")
)

// Document is a signed document whose signature is right. Treat one as read-only.
type Document struct {
	// Kind is what it is about.
	Kind Kind
	// Cluster is the cluster that it is of.
	Cluster keys.ClusterID
	// Serial is the number of its version, at least 1.
	Serial uint64
	// Body is its content, at most MaxBody bytes.
	Body []byte

	signed []byte
}

// Signed returns the document's bytes, which Open reads. They must not be changed.
func (d *Document) Signed() []byte { return d.signed }

// Sign makes a document. The serial must be higher than that of every one of its
// kind that the cluster has had, also under an earlier authority.
func Sign(ca *pki.CA, kind Kind, serial uint64, body []byte) (*Document, error) {
	switch {
	case !kind.known():
		return nil, fmt.Errorf("there is no %s", kind)
	case serial == 0:
		return nil, fmt.Errorf("a %s has no serial 0", kind)
	case len(body) > MaxBody:
		return nil, fmt.Errorf("the %s has %d bytes, more than %d", kind, len(body), MaxBody)
	}
	cluster := ca.Authority().Cluster()
	b := make([]byte, 0, fixed+len(body)+ed25519.SignatureSize)
	b = append(b, magic...)
	b = append(b, byte(kind))
	b = append(b, cluster[:]...)
	b = binary.BigEndian.AppendUint64(b, serial)
	b = binary.BigEndian.AppendUint32(b, uint32(len(body)))
	b = append(b, body...)
	signature, err := ca.SignDocument(b)
	if err != nil {
		return nil, fmt.Errorf("signing the %s: %w", kind, err)
	}
	return Open(ca.Authority(), kind, append(b, signature...))
}

// Open reads a document of a kind that the authority signed. It accepts exactly what
// Sign makes; the error for anything else wraps ErrDocument. signed must not be
// changed afterwards.
func Open(authority *pki.Authority, kind Kind, signed []byte) (*Document, error) {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s", ErrDocument, fmt.Sprintf(format, args...))
	}
	switch {
	case len(signed) > MaxSize:
		return nil, bad("it is larger than %d bytes", MaxSize)
	case len(signed) < fixed+ed25519.SignatureSize:
		return nil, bad("it is cut short")
	case string(signed[:len(magic)]) != magic:
		return nil, bad("it doesn't begin as one, or is of another version")
	}
	message, signature := signed[:len(signed)-ed25519.SignatureSize], signed[len(signed)-ed25519.SignatureSize:]
	// Before anything in it is believed.
	if !authority.VerifyDocument(message, signature) {
		return nil, bad("the cluster's authority hasn't signed it")
	}
	rest := message[len(magic):]
	d := &Document{
		Kind:    Kind(rest[0]),
		Cluster: keys.ClusterID(rest[1:]),
		Serial:  binary.BigEndian.Uint64(rest[17:]),
		Body:    message[fixed:],
		signed:  signed,
	}
	switch size := binary.BigEndian.Uint32(rest[25:]); {
	case d.Kind != kind:
		return nil, bad("it is a %s instead of a %s", d.Kind, kind)
	case !kind.known():
		return nil, bad("there is no %s", kind)
	case d.Cluster != authority.Cluster():
		return nil, bad("it is of cluster %s", d.Cluster)
	case d.Serial == 0:
		return nil, bad("its serial is 0")
	case int64(size) != int64(len(d.Body)):
		return nil, bad("its size doesn't fit its contents")
	}
	return d, nil
}

// Newer reports whether a document is to take the place of the one there is, which
// is nil if there is none. It is false without an error if they are the same. If the
// document is older, the error wraps ErrOlder. One of another kind or cluster is an
// error too.
//
// Two admins who publish at the same moment may make two documents with one serial.
// Of those the one with the larger SHA-256 counts as the newer, so that all nodes
// come to have the same one.
func Newer(there, document *Document) (bool, error) {
	switch {
	case there == nil:
		return true, nil
	case there.Kind != document.Kind || there.Cluster != document.Cluster:
		return false, fmt.Errorf("a %s of cluster %s can't take the place of a %s of cluster %s",
			document.Kind, document.Cluster, there.Kind, there.Cluster)
	case document.Serial > there.Serial:
		return true, nil
	case document.Serial < there.Serial:
		return false, fmt.Errorf("the %s with serial %d is %w, with serial %d", document.Kind, document.Serial, ErrOlder, there.Serial)
	}
	a, b := sha256.Sum256(document.signed), sha256.Sum256(there.signed)
	switch bytes.Compare(a[:], b[:]) {
	case 0:
		return false, nil
	case 1:
		return true, nil
	}
	return false, fmt.Errorf("of two %ss with serial %d, this one counts as %w", document.Kind, document.Serial, ErrOlder)
}
