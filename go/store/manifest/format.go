package manifest

import (
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/chunk"
)

// A manifest blob is
//
//	magic (8) | nonce prefix (16) | length of head (4) | head | list | list ...
//
// where each segment carries a 16-byte tag. Segment i is sealed under the
// nonce prefix || i || 1 if it is the last, else 0; so segments can't be
// dropped, repeated, swapped, or taken from another manifest.
const (
	//
	// Its last byte is the version, a digit. Later versions keep the others, and
	// MaxBlob.
	magic = "PCmanif2"
	// magicUnsummed begins a manifest of version 1, whose entries have no sums. It is
	// only read.
	magicUnsummed = "PCmanif1"

	prefixSize = chacha20poly1305.NonceSizeX - 8
	lengthSize = 4
	startSize  = len(magic) + prefixSize + lengthSize

	// fixedHead is the size of a head without the object's name.
	fixedHead = 1 + 8 + 16 + 8 + 8 + 4 + 8 + 2
	// MaxName is the longest object name that a manifest holds, in bytes.
	MaxName = 4096
	maxHead = fixedHead + MaxName

	// entrySize is the size of a chunk's entry in a list, in bytes: ID, generation,
	// sum.
	entrySize         = entrySizeUnsummed + 4
	entrySizeUnsummed = 32 + 4
	// listLength is how many chunks one list segment holds, the last
	// excepted.
	listLength = 4096

	flagDeleted = 1
)

// Seal returns the blob of a manifest, sealed for the name that BlobName
// gives it, with 16 bytes of the random source as its nonce prefix.
func (s *Sealer) Seal(m *Manifest, random io.Reader) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, fmt.Errorf("sealing a manifest: %w", err)
	}
	head := m.appendHead(nil)
	segments := segmentCount(len(m.Chunks))
	size := startSize + len(head) + len(m.Chunks)*entrySize + segments*chacha20poly1305.Overhead
	if size > MaxBlob {
		return nil, fmt.Errorf("sealing a manifest: the object has %d chunks, more than a manifest holds", len(m.Chunks))
	}
	out := make([]byte, startSize, size)
	copy(out, magic)
	if _, err := io.ReadFull(random, out[len(magic):len(magic)+prefixSize]); err != nil {
		return nil, fmt.Errorf("reading random bytes for a manifest: %w", err)
	}
	binary.BigEndian.PutUint32(out[len(magic)+prefixSize:], uint32(len(head)+chacha20poly1305.Overhead))
	prefix := out[len(magic) : len(magic)+prefixSize]
	associated := associatedData(s.BlobName(m.Name), out[:startSize])
	out = s.aead.Seal(out, nonce(prefix, 0, segments == 1), head, associated)
	list := make([]byte, 0, min(len(m.Chunks), listLength)*entrySize)
	index := 1
	for refs := range slices.Chunk(m.Chunks, listLength) {
		list = appendRefs(list[:0], refs)
		out = s.aead.Seal(out, nonce(prefix, index, index == segments-1), list, associated)
		index++
	}
	return out, nil
}

// Open authenticates a blob that was read under the given name and returns the
// manifest in it. Any fault is ErrCorrupt, but for ErrNewer.
func (s *Sealer) Open(name blob.Name, sealed []byte) (*Manifest, error) {
	if len(sealed) < startSize || len(sealed) > MaxBlob {
		return nil, ErrCorrupt
	}
	start := sealed[:startSize]
	var entry int
	switch string(start[:len(magic)]) {
	case magic:
		entry = entrySize
	case magicUnsummed:
		entry = entrySizeUnsummed
	default:
		if s.isNewer(name, sealed) {
			return nil, ErrNewer
		}
		return nil, ErrCorrupt
	}
	associated := associatedData(name, start)
	head, lists, err := s.openHead(sealed, associated)
	if err != nil {
		return nil, err
	}
	m, count, err := parseHead(head)
	if err != nil {
		return nil, err
	}
	expected := s.BlobName(m.Name)
	if subtle.ConstantTimeCompare(expected.ID[:], name.ID[:]) != 1 {
		return nil, ErrCorrupt
	}
	if err := s.openLists(m, count, entry, lists, noncePrefix(start), associated); err != nil {
		return nil, err
	}
	if m.validate() != nil {
		return nil, ErrCorrupt
	}
	return m, nil
}

// isNewer reports whether a blob that begins as no known version is of a later
// one. If only the version was altered, the tag of the head, which covers it,
// still fits a known version: then the blob is a damaged one of that.
func (s *Sealer) isNewer(name blob.Name, sealed []byte) bool {
	const last = len(magic) - 1
	if version := sealed[last]; string(sealed[:last]) != magic[:last] || version <= magic[last] || version > '9' {
		return false
	}
	for _, known := range []string{magic, magicUnsummed} {
		start := append([]byte(known), sealed[len(known):startSize]...)
		if _, _, err := s.openHead(sealed, associatedData(name, start)); err == nil {
			return false
		}
	}
	return true
}

// openHead returns the plaintext of a manifest's head and the sealed lists.
func (s *Sealer) openHead(sealed, associated []byte) (head, lists []byte, err error) {
	size := binary.BigEndian.Uint32(sealed[len(magic)+prefixSize:])
	rest := sealed[startSize:]
	if size > maxHead+chacha20poly1305.Overhead || int(size) > len(rest) {
		return nil, nil, ErrCorrupt
	}
	head, err = s.aead.Open(nil, nonce(noncePrefix(sealed), 0, int(size) == len(rest)), rest[:size], associated)
	if err != nil {
		return nil, nil, ErrCorrupt
	}
	return head, rest[size:], nil
}

// openLists reads the list segments of a manifest with count chunks, whose entries have
// the given size.
func (s *Sealer) openLists(m *Manifest, count int64, entry int, rest, prefix, associated []byte) error {
	// The count is compared with the bytes that are there before memory is
	// taken for it.
	if count > int64(MaxBlob/entry) {
		return ErrCorrupt
	}
	segments := segmentCount(int(count))
	if int64(len(rest)) != count*int64(entry)+int64(segments-1)*chacha20poly1305.Overhead {
		return ErrCorrupt
	}
	m.Chunks = make([]chunk.Ref, 0, count)
	for index := 1; index < segments; index++ {
		size := min(len(rest), listLength*entry+chacha20poly1305.Overhead)
		list, err := s.aead.Open(nil, nonce(prefix, index, index == segments-1), rest[:size], associated)
		if err != nil {
			return ErrCorrupt
		}
		m.Chunks = appendParsedRefs(m.Chunks, list, entry)
		rest = rest[size:]
	}
	return nil
}

// validate checks what must hold in every manifest.
func (m *Manifest) validate() error {
	switch {
	case m.Name == "" || len(m.Name) > MaxName:
		return fmt.Errorf("the object's name has %d bytes, not 1 to %d", len(m.Name), MaxName)
	case m.Deleted && (m.Size != 0 || len(m.Chunks) != 0 || m.FileTime != 0 || m.FileMode != 0):
		return fmt.Errorf("a tombstone has content")
	case m.Size < 0 || int64(len(m.Chunks)) != (m.Size+chunk.Size-1)/chunk.Size:
		return fmt.Errorf("%d chunks can't hold %d bytes", len(m.Chunks), m.Size)
	case m.FileMode > 0o777:
		return fmt.Errorf("file mode %o has more than permission bits", m.FileMode)
	}
	return nil
}

// appendHead appends the plaintext of a manifest's head.
func (m *Manifest) appendHead(b []byte) []byte {
	var flags byte
	if m.Deleted {
		flags |= flagDeleted
	}
	b = append(b, flags)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Version.Time))
	b = append(b, m.Version.Tie[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(m.Size))
	b = binary.BigEndian.AppendUint64(b, uint64(m.FileTime))
	b = binary.BigEndian.AppendUint32(b, m.FileMode)
	b = binary.BigEndian.AppendUint64(b, uint64(len(m.Chunks)))
	b = binary.BigEndian.AppendUint16(b, uint16(len(m.Name)))
	return append(b, m.Name...)
}

// parseHead reads the plaintext of a head and returns the manifest without its
// chunks, and their number.
func parseHead(b []byte) (*Manifest, int64, error) {
	if len(b) < fixedHead || b[0]&^flagDeleted != 0 {
		return nil, 0, ErrCorrupt
	}
	m := &Manifest{Deleted: b[0]&flagDeleted != 0}
	m.Version.Time = int64(binary.BigEndian.Uint64(b[1:]))
	copy(m.Version.Tie[:], b[9:])
	m.Size = int64(binary.BigEndian.Uint64(b[25:]))
	m.FileTime = int64(binary.BigEndian.Uint64(b[33:]))
	m.FileMode = binary.BigEndian.Uint32(b[41:])
	count := binary.BigEndian.Uint64(b[45:])
	name := b[fixedHead:]
	if int(binary.BigEndian.Uint16(b[53:])) != len(name) || count > MaxBlob {
		return nil, 0, ErrCorrupt
	}
	m.Name = string(name)
	return m, int64(count), nil
}

// appendRefs appends the plaintext of a list segment.
func appendRefs(b []byte, refs []chunk.Ref) []byte {
	for _, ref := range refs {
		b = append(b, ref.ID[:]...)
		b = binary.BigEndian.AppendUint32(b, ref.Generation)
		b = binary.BigEndian.AppendUint32(b, ref.Sum)
	}
	return b
}

// appendParsedRefs reads a list segment, whose length is a multiple of its entries' size.
func appendParsedRefs(refs []chunk.Ref, b []byte, entry int) []chunk.Ref {
	for b := range slices.Chunk(b, entry) {
		ref := chunk.Ref{ID: chunk.ID(b[:32]), Generation: binary.BigEndian.Uint32(b[32:])}
		if entry == entrySize {
			ref.Sum = binary.BigEndian.Uint32(b[36:])
		}
		refs = append(refs, ref)
	}
	return refs
}

// segmentCount returns how many segments a manifest with the given number of
// chunks has, the head included.
func segmentCount(chunks int) int {
	return 1 + (chunks+listLength-1)/listLength
}

// noncePrefix returns the nonce prefix of a manifest, sealed or its start.
func noncePrefix(sealed []byte) []byte { return sealed[len(magic) : len(magic)+prefixSize] }

// nonce returns the nonce of a segment.
func nonce(prefix []byte, index int, last bool) []byte {
	n := make([]byte, 0, chacha20poly1305.NonceSizeX)
	n = append(n, prefix...)
	n = binary.BigEndian.AppendUint32(n, uint32(index))
	if last {
		return binary.BigEndian.AppendUint32(n, 1)
	}
	return binary.BigEndian.AppendUint32(n, 0)
}

// associatedData is what the tag of every segment covers besides its content:
// the blob's name and the unsealed start of the manifest.
func associatedData(name blob.Name, start []byte) []byte {
	return append(slices.Clone(name.ID[:]), start...)
}
