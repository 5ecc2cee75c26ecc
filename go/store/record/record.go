// Package record seals the store's own records: notes that one command leaves
// for others, one blob of each sort at every location.
//
// The format is written down in docs/formats.md.
package record

import (
	"bytes"
	"crypto/cipher"
	"errors"
	"fmt"
	"io"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
)

// MagicSize is the length of a record's magic in bytes.
const MagicSize = 8

// Overhead is what sealing adds to a record's content, in bytes.
const Overhead = MagicSize + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

// ErrCorrupt means that a blob isn't an authentic record of its sort and
// cluster.
var ErrCorrupt = errors.New("record is corrupt")

// Sealer seals and opens one sort of record of one cluster. It may be used by
// several goroutines at once.
type Sealer struct {
	aead  cipher.AEAD
	magic string
	name  blob.Name
}

// NewSealer returns the Sealer of the records that begin with a magic of
// MagicSize bytes and have the blob name that is derived for a purpose.
func NewSealer(root *keys.Root, magic string, name keys.Purpose) (*Sealer, error) {
	if len(magic) != MagicSize {
		return nil, fmt.Errorf("the magic %q of a record has %d bytes, not %d", magic, len(magic), MagicSize)
	}
	sealKey := root.Derive(keys.PurposeRecordSeal)
	defer clear(sealKey)
	aead, err := chacha20poly1305.NewX(sealKey)
	if err != nil {
		return nil, fmt.Errorf("record cipher: %w", err)
	}
	s := &Sealer{aead: aead, magic: magic, name: blob.Name{Kind: blob.KindRecord}}
	copy(s.name.ID[:], root.Derive(name))
	return s, nil
}

// Name returns the name that the record has at every location.
func (s *Sealer) Name() blob.Name { return s.name }

// Seal returns the blob of a record, with 24 bytes of the random source as its
// nonce.
func (s *Sealer) Seal(content []byte, random io.Reader) ([]byte, error) {
	start := make([]byte, MagicSize+chacha20poly1305.NonceSizeX, Overhead+len(content))
	copy(start, s.magic)
	nonce := start[MagicSize:]
	if _, err := io.ReadFull(random, nonce); err != nil {
		return nil, fmt.Errorf("reading random bytes for a record: %w", err)
	}
	return s.aead.Seal(start, nonce, content, s.associated()), nil
}

// Open authenticates the blob of a record and returns its content. Any fault is
// ErrCorrupt.
func (s *Sealer) Open(sealed []byte) ([]byte, error) {
	const start = MagicSize + chacha20poly1305.NonceSizeX
	if len(sealed) < start || !bytes.HasPrefix(sealed, []byte(s.magic)) {
		return nil, ErrCorrupt
	}
	content, err := s.aead.Open(nil, sealed[MagicSize:start], sealed[start:], s.associated())
	if err != nil {
		return nil, ErrCorrupt
	}
	return content, nil
}

// associated is what a record's tag covers besides its content.
func (s *Sealer) associated() []byte {
	return append([]byte(s.magic), s.name.ID[:]...)
}
