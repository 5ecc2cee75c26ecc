// Package chunk seals the pieces that objects are cut into.
//
// A chunk is at most 4 MiB of plaintext. Its ID is a keyed MAC of that
// plaintext, so equal chunks have equal IDs within a cluster and nobody
// without the key can tell what is inside. The name, the nonce and therefore
// every byte of the sealed blob follow from the ID and a generation number:
// whoever stores the same chunk writes the same bytes.
//
// The format is written down in docs/formats.md.
package chunk

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys"
)

const (
	// Size is the largest plaintext of a chunk, in bytes. Every chunk of an
	// object but its last has exactly this size.
	Size = 4 << 20
	// HeaderSize is the number of bytes before the ciphertext: the magic.
	HeaderSize = len(magic)
	// Overhead is what sealing adds to a chunk's plaintext, in bytes.
	Overhead = HeaderSize + chacha20poly1305.Overhead
	// MaxBlob is the size of the largest sealed chunk, in bytes.
	MaxBlob = Size + Overhead
)

const magic = "PCchunk1"

// ErrCorrupt means that a blob isn't the chunk that it should be: it was
// altered, cut short, or belongs to another name or cluster.
var ErrCorrupt = errors.New("chunk is corrupt")

// ID identifies a chunk by its content: HMAC-SHA256 of the plaintext.
type ID [sha256.Size]byte

// Ref names one stored copy of a chunk. The generation tells apart copies of
// the same content; it is 0 unless garbage collection was about to delete the
// earlier generations when the chunk was stored.
type Ref struct {
	ID         ID
	Generation uint32
	// Sum is the CRC-32C of the plaintext (RFC 3720, appendix B.4), or 0 where the
	// manifest is of a version without sums. It is no part of the chunk's name.
	Sum uint32
}

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sealer seals and opens the chunks of one cluster. It may be used by several
// goroutines at once.
type Sealer struct {
	aead  cipher.AEAD
	ids   sync.Pool // of hash.Hash
	names sync.Pool // of hash.Hash
}

// NewSealer derives a cluster's chunk keys from its root key.
func NewSealer(root *keys.Root) (*Sealer, error) {
	sealKey := root.Derive(keys.PurposeChunkSeal)
	defer clear(sealKey)
	aead, err := chacha20poly1305.NewX(sealKey)
	if err != nil {
		return nil, fmt.Errorf("chunk cipher: %w", err)
	}
	s := &Sealer{aead: aead}
	idKey := root.Derive(keys.PurposeChunkID)
	s.ids.New = func() any { return hmac.New(sha256.New, idKey) }
	nameKey := root.Derive(keys.PurposeChunkName)
	s.names.New = func() any { return hmac.New(sha256.New, nameKey) }
	return s, nil
}

// Identify returns the first generation of a chunk with the given plaintext.
func (s *Sealer) Identify(plaintext []byte) Ref {
	return Ref{ID: s.id(plaintext), Sum: crc32.Checksum(plaintext, castagnoli)}
}

// id returns the ID of the chunk with the given plaintext.
func (s *Sealer) id(plaintext []byte) (id ID) {
	mac := s.ids.Get().(hash.Hash)
	defer s.ids.Put(mac)
	mac.Reset()
	mac.Write(plaintext)
	mac.Sum(id[:0])
	return id
}

// readPiece is how much Read reads before it hashes: little enough to be still in
// the processor's cache.
const readPiece = 256 << 10

// Read reads plaintext into buf, up to its length, which is at most Size, and returns
// the number of bytes and the first generation of the chunk that they are. The error is
// that of io.ReadFull.
func (s *Sealer) Read(r io.Reader, buf []byte) (n int, ref Ref, err error) {
	mac := s.ids.Get().(hash.Hash)
	defer s.ids.Put(mac)
	mac.Reset()
	for n < len(buf) && err == nil {
		var got int
		got, err = io.ReadFull(r, buf[n:min(n+readPiece, len(buf))])
		mac.Write(buf[n : n+got])
		ref.Sum = crc32.Update(ref.Sum, castagnoli, buf[n:n+got])
		n += got
	}
	if errors.Is(err, io.EOF) && n > 0 {
		err = io.ErrUnexpectedEOF
	}
	mac.Sum(ref.ID[:0])
	return n, ref, err
}

// Name returns the blob name under which a copy of a chunk is stored.
func (s *Sealer) Name(ref Ref) blob.Name {
	mac := s.names.Get().(hash.Hash)
	defer s.names.Put(mac)
	mac.Reset()
	var generation [4]byte
	binary.BigEndian.PutUint32(generation[:], ref.Generation)
	mac.Write(ref.ID[:])
	mac.Write(generation[:])
	name := blob.Name{Kind: blob.KindChunk}
	mac.Sum(name.ID[:0])
	return name
}

// Seal seals a plaintext of 1 to Size bytes and returns the blob, in dst's memory
// when its capacity is at least len(plaintext)+Overhead. The plaintext must not
// overlap dst's memory, unless it begins HeaderSize bytes after it: then it is
// sealed in place.
func (s *Sealer) Seal(dst []byte, name blob.Name, plaintext []byte) []byte {
	return s.aead.Seal(append(dst[:0], magic...), nonce(name), plaintext, associated(name))
}

// Open authenticates a blob that was read under the given name as the chunk
// that ref stands for and returns its plaintext, in dst's memory when its capacity
// is enough. dst's memory must not overlap the blob; when dst is nil, the blob is
// decrypted in place and its bytes are lost even when that fails. Any fault is
// ErrCorrupt.
func (s *Sealer) Open(dst []byte, ref Ref, sealed []byte) ([]byte, error) {
	if len(sealed) < Overhead || len(sealed) > MaxBlob || string(sealed[:HeaderSize]) != magic {
		return nil, ErrCorrupt
	}
	name := s.Name(ref)
	ciphertext := sealed[HeaderSize:]
	if dst == nil {
		dst = ciphertext
	}
	plaintext, err := s.aead.Open(dst[:0], nonce(name), ciphertext, associated(name))
	if err != nil {
		return nil, ErrCorrupt
	}
	if !s.undamaged(ref, plaintext) {
		return nil, ErrCorrupt
	}
	return plaintext, nil
}

// undamaged reports whether an authentic plaintext is what its writer hashed. The
// cipher's tag already binds it to the name, and so to the ID, against everybody who
// lacks the key. What is left is a writer whose memory failed between hashing and
// sealing. The sum finds that at a small part of the MAC's cost; the MAC decides where
// there is no sum, or where the sum may be what was damaged.
func (s *Sealer) undamaged(ref Ref, plaintext []byte) bool {
	if crc32.Checksum(plaintext, castagnoli) == ref.Sum {
		return true
	}
	id := s.id(plaintext)
	return subtle.ConstantTimeCompare(id[:], ref.ID[:]) == 1
}

// nonce returns a chunk's nonce: the first 24 bytes of its name. Two chunks
// share a nonce only if they share the name, and then they are the same bytes
// with the same associated data, so nothing is revealed.
func nonce(name blob.Name) []byte {
	return name.ID[:chacha20poly1305.NonceSizeX]
}

// associated returns the data that a chunk's tag covers besides its content.
func associated(name blob.Name) []byte {
	return append([]byte(magic), name.ID[:]...)
}
