// Package header is the state volume's header: who the volume belongs to, and its
// key, wrapped once for each way to unlock it. docs/formats.md, "Volume header",
// describes it.
//
// A header is the only part of a state partition that can be read without a key.
// Nothing in it is believed further than that until a slot was opened: then the
// volume key authenticates all of it.
package header

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/crypto/cryptobyte"

	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

const (
	// MaxSize is the size in bytes that no header exceeds, of this format version
	// or a later one.
	MaxSize = 64 << 10
	// MaxContent is the size in bytes that the content of a slot doesn't exceed.
	MaxContent = 16 << 10
	// MaxName is the size in bytes that a node's name doesn't exceed.
	MaxName = 64

	magic   = "PCvolume"
	version = 1
	// prefixSize is the size of what all versions begin with: the magic, the
	// version and the size.
	prefixSize = len(magic) + 2 + 4
	// fixedSize is the size of everything before the node's name.
	fixedSize = prefixSize + 16 + 8 + 8 + 1
	macSize   = sha256.Size
)

// ErrHeader is wrapped by errors for bytes that are no header, and for headers
// that are not authentic.
var ErrHeader = errors.New("bad volume header")

// ErrWrongKey is returned for a key that opens no slot. A slot that was altered
// gives the same error.
var ErrWrongKey = errors.New("the key doesn't open the state volume")

// Owner says whose a volume is. A locked node shows it, and pcctl compares it with
// the registry.
type Owner struct {
	// Volume is the volume's own ID.
	Volume volumeid.ID
	// Node is the node's ID and Name its name: 1 to 64 bytes of printable ASCII
	// without blanks.
	Node pki.NodeID
	Name string
}

// Header is the header of one volume. Treat one as read-only, since a change to its
// fields makes it fail authentication; With makes a changed one.
type Header struct {
	// Owner is unauthenticated until a slot was opened, like all the rest.
	Owner Owner
	// Serial is 1 in a volume's first header and grows by one with every change.
	Serial uint64
	// Slots are in the order of their kinds, at most one of each, and the admin
	// slot always.
	Slots []Slot

	mac [macSize]byte
}

// New makes a volume's first header and its key, which is random, with one slot for
// the admin's key. rand must be a cryptographically secure source.
func New(rand io.Reader, owner Owner, admin *Key) (*Header, *Key, error) {
	key := new(Key)
	if _, err := io.ReadFull(rand, key[:]); err != nil {
		return nil, nil, fmt.Errorf("make a volume key: %w", err)
	}
	h, err := first(rand, owner, key, admin)
	if err != nil {
		key.Wipe()
		return nil, nil, err
	}
	return h, key, nil
}

func first(rand io.Reader, owner Owner, key, admin *Key) (*Header, error) {
	content, err := Wrap(rand, owner.Volume, SlotAdmin, key, admin)
	if err != nil {
		return nil, err
	}
	h := &Header{Owner: owner, Serial: 1, Slots: []Slot{{SlotAdmin, content}}}
	if err := h.validate(); err != nil {
		return nil, err
	}
	h.mac, err = h.computeMAC(key)
	return h, err
}

// With returns the header that follows h: the next serial, and the given slots and
// node's name in place of h's. It refuses an h that key doesn't authenticate, so
// that an altered header is never made authentic. It can't tell whether the slots
// open.
func (h *Header) With(key *Key, name string, slots []Slot) (*Header, error) {
	if err := h.Verify(key); err != nil {
		return nil, err
	}
	if h.Serial == math.MaxUint64 {
		return nil, fmt.Errorf("%w: its serial can't grow any more", ErrHeader)
	}
	next := &Header{Owner: h.Owner, Serial: h.Serial + 1, Slots: slices.Clone(slots)}
	next.Owner.Name = name
	slices.SortStableFunc(next.Slots, func(a, b Slot) int { return int(a.Kind) - int(b.Kind) })
	if err := next.validate(); err != nil {
		return nil, err
	}
	mac, err := next.computeMAC(key)
	next.mac = mac
	return next, err
}

// Unlock opens the admin slot with the admin's key, and authenticates the header
// with the volume key in it.
func (h *Header) Unlock(admin *Key) (*Key, error) {
	slot, ok := h.Slot(SlotAdmin)
	if !ok {
		return nil, fmt.Errorf("%w: it has no admin slot", ErrHeader)
	}
	key, err := Unwrap(h.Owner.Volume, SlotAdmin, slot.Content, admin)
	if err != nil {
		return nil, err
	}
	if err := h.Verify(key); err != nil {
		key.Wipe()
		return nil, err
	}
	return key, nil
}

// Verify reports whether the header was made by somebody who held the volume key,
// as it is. If not, the error wraps ErrHeader. Whoever opens a slot other than the
// admin's must call it.
func (h *Header) Verify(key *Key) error {
	if err := h.validate(); err != nil {
		return err
	}
	mac, err := h.computeMAC(key)
	if err != nil {
		return err
	}
	if !hmac.Equal(mac[:], h.mac[:]) {
		return fmt.Errorf("%w: it was altered, or belongs to another key", ErrHeader)
	}
	return nil
}

// Slot returns the slot of a kind.
func (h *Header) Slot(kind SlotKind) (Slot, bool) {
	for _, s := range h.Slots {
		if s.Kind == kind {
			return s, true
		}
	}
	return Slot{}, false
}

func (h *Header) computeMAC(key *Key) (mac [macSize]byte, err error) {
	secret, err := key.derive(h.Owner.Volume, "header", sha256.Size)
	if err != nil {
		return mac, err
	}
	defer clear(secret)
	m := hmac.New(sha256.New, secret)
	m.Write(h.body())
	return [macSize]byte(m.Sum(nil)), nil
}

// body is the header up to its MAC.
func (h *Header) body() []byte {
	b := make([]byte, 0, h.size())
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint16(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(h.size()))
	b = append(b, h.Owner.Volume[:]...)
	b = binary.BigEndian.AppendUint64(b, h.Serial)
	b = append(b, h.Owner.Node[:]...)
	b = append(b, byte(len(h.Owner.Name)))
	b = append(b, h.Owner.Name...)
	b = append(b, byte(len(h.Slots)))
	for _, s := range h.Slots {
		b = append(b, byte(s.Kind))
		b = binary.BigEndian.AppendUint16(b, uint16(len(s.Content)))
		b = append(b, s.Content...)
	}
	return b
}

// size is the header's size in bytes.
func (h *Header) size() int {
	size := fixedSize + len(h.Owner.Name) + 1 + macSize + sha256.Size
	for _, s := range h.Slots {
		size += 1 + 2 + len(s.Content)
	}
	return size
}

// Marshal returns the header's bytes, which Parse reads.
func (h *Header) Marshal() []byte {
	b := append(h.body(), h.mac[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// Parse reads a header from the beginning of b, which may have more after it. It
// accepts exactly what Marshal writes; any other bytes give an error that wraps
// ErrHeader. The header is intact then, but not yet authentic.
func Parse(b []byte) (*Header, error) {
	b, err := checkEnvelope(b)
	if err != nil {
		return nil, err
	}
	if v := binary.BigEndian.Uint16(b[len(magic):]); v != version {
		return nil, fmt.Errorf("%w: its format version is %d and this program reads version %d", ErrHeader, v, version)
	}
	rest := cryptobyte.String(b[prefixSize : len(b)-sha256.Size])
	h := new(Header)
	var name cryptobyte.String
	var slots uint8
	whole := rest.CopyBytes(h.Owner.Volume[:]) && rest.ReadUint64(&h.Serial) && rest.CopyBytes(h.Owner.Node[:]) &&
		rest.ReadUint8LengthPrefixed(&name) && rest.ReadUint8(&slots)
	h.Owner.Name = string(name)
	for i := 0; whole && i < int(slots); i++ {
		var kind uint8
		var content cryptobyte.String
		whole = rest.ReadUint8(&kind) && rest.ReadUint16LengthPrefixed(&content)
		h.Slots = append(h.Slots, Slot{SlotKind(kind), bytes.Clone(content)})
	}
	if !whole || !rest.CopyBytes(h.mac[:]) || !rest.Empty() {
		return nil, fmt.Errorf("%w: its size doesn't fit its contents", ErrHeader)
	}
	if err := h.validate(); err != nil {
		return nil, err
	}
	return h, nil
}

// checkEnvelope checks what every version of the format has in common: the magic,
// the size, and a SHA-256 of the rest at the end. It returns the header without
// what comes after it.
func checkEnvelope(b []byte) ([]byte, error) {
	if len(b) < prefixSize || string(b[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it doesn't begin as one", ErrHeader)
	}
	size := binary.BigEndian.Uint32(b[len(magic)+2:])
	if size > MaxSize || int(size) > len(b) || int(size) < prefixSize+sha256.Size {
		return nil, fmt.Errorf("%w: it can't have %d bytes", ErrHeader, size)
	}
	b = b[:size]
	body, want := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], want) {
		return nil, fmt.Errorf("%w: it is damaged (its checksum doesn't match)", ErrHeader)
	}
	return b, nil
}

// validate checks the rules stated at Owner and Header.
func (h *Header) validate() error {
	if h.Serial == 0 {
		return fmt.Errorf("%w: its serial is 0", ErrHeader)
	}
	if err := CheckName(h.Owner.Name); err != nil {
		return fmt.Errorf("%w: %w", ErrHeader, err)
	}
	if len(h.Slots) == 0 || h.Slots[0].Kind != SlotAdmin {
		return fmt.Errorf("%w: it has no admin slot", ErrHeader)
	}
	last := SlotKind(0)
	for _, s := range h.Slots {
		if s.Kind <= last {
			return fmt.Errorf("%w: its slots are out of order", ErrHeader)
		}
		last = s.Kind
		if err := s.validate(); err != nil {
			return err
		}
	}
	return nil
}

// CheckName tells whether a header can hold a node's name.
func CheckName(name string) error {
	if len(name) == 0 || len(name) > MaxName {
		return fmt.Errorf("a node's name has 1 to %d bytes, not %d", MaxName, len(name))
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return fmt.Errorf("the node's name %q has the byte %#x", name, c)
		}
	}
	return nil
}
