// Package keys holds a cluster's root key, the keys derived from it, and the
// key header that wraps it.
//
// A cluster has one random 256-bit root key. Everything secret is derived from
// it, one key a purpose, so that a part of the system that needs one key gets
// that one and can compute no other. The root key is stored only in the key
// header, the one blob at a location that is not encrypted, wrapped once under
// the passphrase and once under the recovery key.
//
// The header comes from a location that nobody trusts. Whoever alters it can
// make unlocking fail, and can bring back an older header that was authentic in
// its time. They can't make a wrong root key come out unless they guessed the
// passphrase, can't learn more about it from watching an unlock than whether one
// guess for each slot was right, and can't make unlocking take more memory or
// time than the limits stated at Argon2. docs/formats.md states every byte.
//
// Keys are overwritten as soon as they are no longer needed where that is
// possible. Copies inside the standard library's HMAC and the cipher's state,
// and those the runtime makes when it moves a stack, are out of reach.
package keys

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
)

const (
	rootSize = 32
	keySize  = 32
	// label begins every HKDF info string of this format version.
	label = "powercloud v1 "
)

// ErrWrongKey says that a passphrase or recovery key opens no slot of a header.
// It can't be told from a header whose slots were altered on purpose: where the
// copies of a header differ between locations, try them all before believing
// it.
var ErrWrongKey = errors.New("keys: wrong passphrase or recovery key")

// ErrHeader says that the bytes are not an intact key header: not one at all,
// damaged, of a version or with parameters that this program doesn't accept, or
// altered by somebody without the root key. The error that wraps it says which.
var ErrHeader = errors.New("keys: bad key header")

// Purpose names what a derived key is for. Each purpose has exactly one use; a
// new use gets a new purpose.
type Purpose string

// The purposes of the keys derived from the root key.
const (
	// PurposeChunkID keys the MAC of a chunk's plaintext that is its ID.
	PurposeChunkID Purpose = "chunk id"
	// PurposeChunkName keys the MAC of a chunk's ID that is its blob's name.
	PurposeChunkName Purpose = "chunk name"
	// PurposeChunkSeal encrypts chunks.
	PurposeChunkSeal Purpose = "chunk seal"
	// PurposeManifestID keys the MAC of an object's name that is its
	// manifest's blob name.
	PurposeManifestID Purpose = "manifest id"
	// PurposeManifestSeal encrypts manifests.
	PurposeManifestSeal Purpose = "manifest seal"
	// PurposeRecordSeal encrypts the store's own records.
	PurposeRecordSeal Purpose = "record seal"
	// PurposeGraceRecordName gives the grace record's blob name: the derived
	// bytes are the name itself, seen by every location, and key nothing.
	PurposeGraceRecordName Purpose = "grace record name"
	// PurposeLostRecordName gives the blob name of the record of lost blobs,
	// in the same way.
	PurposeLostRecordName Purpose = "lost record name"
	// PurposeTombstoneRecordName gives the blob name of the record of the tombstones
	// that every location has, likewise.
	PurposeTombstoneRecordName Purpose = "tombstone record name"
	// PurposeRemovalRecordName gives the blob name of the record of the tombstones
	// that are being deleted, likewise.
	PurposeRemovalRecordName Purpose = "removal record name"
	// PurposeCatalogSeal encrypts the catalog of manifests that pcctl keeps on
	// the machine that it runs on.
	PurposeCatalogSeal Purpose = "catalog seal"
	// PurposeAuthority gives the private key of the cluster's certificate authority:
	// the derived bytes are the seed of an Ed25519 key.
	PurposeAuthority Purpose = "certificate authority"
	// PurposeStateVolumes gives the keys of nodes' state volumes, one for each.
	PurposeStateVolumes Purpose = "state volumes"
	// PurposeHeaderMAC keys the MAC over the key header.
	PurposeHeaderMAC Purpose = "header mac"
)

// Root is a cluster's 256-bit root key. Only pcctl ever holds one. Pass it by
// pointer: a copy is not wiped with the original. Its methods may be called
// concurrently, except that Wipe must come after all others.
type Root struct {
	key [rootSize]byte
	// live is false in a Root that was never filled and in one that was wiped.
	// Both would otherwise derive keys that anybody can compute.
	live bool
}

// NewRoot makes a root key from rand, which must be a cryptographically secure
// source.
func NewRoot(rand io.Reader) (*Root, error) {
	r := new(Root)
	if _, err := io.ReadFull(rand, r.key[:]); err != nil {
		clear(r.key[:])
		return nil, fmt.Errorf("keys: cannot read random bytes for the root key: %w", err)
	}
	r.live = true
	return r, nil
}

// Derive returns the 32-byte key for one purpose: HKDF-SHA256 (RFC 5869) with
// the root key as input, no salt, and "powercloud v1 " followed by the purpose
// as info. The caller owns the result and should clear it after use.
//
// Derive panics if r holds no key, either because it was made without NewRoot
// or because it was wiped: going on would protect data with a key everybody
// knows.
func (r *Root) Derive(purpose Purpose) []byte {
	if !r.live {
		panic("keys: Derive on a Root that holds no key")
	}
	return expand(r.key[:], nil, label+string(purpose), keySize)
}

// Wipe overwrites the key. It may be called more than once.
func (r *Root) Wipe() {
	clear(r.key[:])
	r.live = false
}

// Format writes a placeholder whatever the verb, so that no log line or error
// shows the key.
func (r Root) Format(s fmt.State, _ rune) {
	// A failed write is fmt's to notice; a Formatter can't report it.
	_, _ = io.WriteString(s, "keys.Root(secret)")
}

// expand is HKDF-SHA256.
func expand(secret, salt []byte, info string, size int) []byte {
	out, err := hkdf.Key(sha256.New, secret, salt, info, size)
	if err != nil {
		// The only causes are an output over 255 hashes long and a hash or key
		// size that the FIPS mode forbids; every call here is within both.
		panic("keys: HKDF-SHA256 refused constant sizes: " + err.Error())
	}
	return out
}
