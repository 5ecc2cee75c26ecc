package blob

import (
	"encoding/hex"
	"fmt"
)

// Kind says what a blob is for. It is part of the blob's name.
type Kind uint8

// The kinds of blobs. The zero Kind is none of them.
const (
	// KindHeader is the cluster's key header. There is one at a location.
	KindHeader Kind = iota + 1
	// KindManifest is a sealed manifest: one object's name, size and chunk list.
	KindManifest
	// KindChunk is a sealed chunk of data.
	KindChunk
	// KindRecord is the store's own sealed bookkeeping, such as gc's.
	KindRecord
)

// String returns the kind's word in a blob's name: "header", "manifest", "chunk"
// or "record".
func (k Kind) String() string {
	switch k {
	case KindHeader:
		return "header"
	case KindManifest:
		return "manifest"
	case KindChunk:
		return "chunk"
	case KindRecord:
		return "record"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Kinds returns every kind, the header's first.
func Kinds() []Kind { return []Kind{KindHeader, KindManifest, KindChunk, KindRecord} }

// IDSize is the length of a blob's ID in bytes.
const IDSize = 32

// Name names a blob. Names are comparable with ==.
type Name struct {
	Kind Kind
	// ID is opaque to a location. The header's is zero.
	ID [IDSize]byte
}

// Header returns the name of the key header.
func Header() Name { return Name{Kind: KindHeader} }

// String returns "header" for the key header, and otherwise the kind, a slash
// and the ID as 64 lower-case hexadecimal digits.
func (n Name) String() string {
	if n.Kind == KindHeader {
		return n.Kind.String()
	}
	return n.Kind.String() + "/" + hex.EncodeToString(n.ID[:])
}

// Check returns an error for a name that no blob can have: one of an unknown
// kind, or a header with an ID.
func (n Name) Check() error {
	if n.Kind < KindHeader || n.Kind > KindRecord {
		return fmt.Errorf("blob name of unknown kind %d", uint8(n.Kind))
	}
	if n.Kind == KindHeader && n != Header() {
		return fmt.Errorf("blob name of a header with an ID; there is one header, and its ID is zero")
	}
	return nil
}

// ParseName is the inverse of String. It accepts nothing else: no upper-case
// digits, no other separators.
func ParseName(s string) (Name, error) {
	for _, k := range Kinds() {
		word := k.String()
		if k == KindHeader {
			if s == word {
				return Header(), nil
			}
			continue
		}
		if len(s) == len(word)+1+2*IDSize && s[:len(word)] == word && s[len(word)] == '/' {
			if id, ok := ParseID(s[len(word)+1:]); ok {
				return Name{Kind: k, ID: id}, nil
			}
		}
	}
	const shown = 100
	if len(s) > shown {
		s = s[:shown]
	}
	return Name{}, fmt.Errorf("%q is not a blob's name", s)
}

// ParseID reads an ID from exactly 64 lower-case hexadecimal digits.
func ParseID(s string) (id [IDSize]byte, ok bool) {
	if len(s) != 2*IDSize {
		return id, false
	}
	for i := range len(s) {
		var digit byte
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digit = c - '0'
		case 'a' <= c && c <= 'f':
			digit = c - 'a' + 10
		default:
			return [IDSize]byte{}, false
		}
		id[i/2] = id[i/2]<<4 | digit
	}
	return id, true
}
