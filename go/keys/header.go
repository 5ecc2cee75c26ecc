package keys

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
)

const (
	// MaxHeader is the size in bytes that no key header exceeds, of this
	// format version or a later one.
	MaxHeader = 4096
	// MaxSlots is the number of slots that a header can have.
	MaxSlots = 8

	headerMagic   = "PCheader"
	headerVersion = 1
	// headerStart is the size of the magic and the version.
	headerStart = len(headerMagic) + 2
	// headerFixed is the size of everything before the slots.
	headerFixed = headerStart + 16 + 8 + 1
	macSize     = sha256.Size
)

// Header is a key header: the root key of one cluster, wrapped once for every
// secret that opens it. Treat one as read-only, since a change to its fields
// makes it fail authentication; WithSlots makes a changed one.
type Header struct {
	// Cluster is the cluster's ID.
	Cluster ClusterID
	// Serial is 1 in a cluster's first header and grows by one with every
	// change. Like all the rest it is unauthenticated until the header was
	// unlocked or verified.
	Serial uint64
	// Slots holds 2 to 8 slots with different IDs, at least one of each kind.
	Slots []Slot

	mac [macSize]byte
}

// Create makes a new cluster: its ID, its root key, and its first header, with
// one slot for the passphrase (Argon2id with 256 MiB, 2 passes, 4 lanes) and
// one for a new recovery key. rand must be a cryptographically secure source.
// A passphrase that CheckPassphrase refuses is an error.
func Create(rand io.Reader, passphrase []byte) (h *Header, root *Root, recovery RecoveryKey, err error) {
	return create(rand, passphrase, standardArgon2())
}

// create is Create with a cost of one's choice, which only this package's tests
// have.
func create(rand io.Reader, passphrase []byte, cost Argon2) (*Header, *Root, RecoveryKey, error) {
	if err := CheckPassphrase(passphrase); err != nil {
		return nil, nil, RecoveryKey{}, err
	}
	h := new(Header)
	if _, err := io.ReadFull(rand, h.Cluster[:]); err != nil {
		return nil, nil, RecoveryKey{}, fmt.Errorf("keys: cannot read random bytes for the cluster ID: %w", err)
	}
	root, err := NewRoot(rand)
	if err != nil {
		return nil, nil, RecoveryKey{}, err
	}
	recovery, err := h.fill(rand, root, passphrase, cost)
	if err != nil {
		root.Wipe()
		return nil, nil, RecoveryKey{}, err
	}
	return h, root, recovery, nil
}

// fill gives a header that has only its cluster ID its two slots, serial and
// MAC.
func (h *Header) fill(rand io.Reader, root *Root, passphrase []byte, cost Argon2) (RecoveryKey, error) {
	first, err := h.newPassphraseSlot(rand, root, 1, passphrase, cost)
	if err != nil {
		return RecoveryKey{}, err
	}
	second, recovery, err := h.NewRecoverySlot(rand, root, 2)
	if err != nil {
		return RecoveryKey{}, err
	}
	h.Serial = 1
	h.Slots = []Slot{first, second}
	h.mac = h.computeMAC(root)
	return recovery, nil
}

// NewPassphraseSlot wraps root for the header's cluster under a passphrase, at
// the cost that Create uses. It doesn't change the header: hand the slot to
// WithSlots. A passphrase that CheckPassphrase refuses is an error.
func (h *Header) NewPassphraseSlot(rand io.Reader, root *Root, id uint8, passphrase []byte) (Slot, error) {
	return h.newPassphraseSlot(rand, root, id, passphrase, standardArgon2())
}

func (h *Header) newPassphraseSlot(rand io.Reader, root *Root, id uint8, passphrase []byte, cost Argon2) (Slot, error) {
	if err := CheckPassphrase(passphrase); err != nil {
		return Slot{}, err
	}
	return h.newSlot(rand, root, Slot{ID: id, Kind: SlotPassphrase, Argon2: cost}, passphrase)
}

// NewRecoverySlot wraps root for the header's cluster under a new recovery key.
// It doesn't change the header: hand the slot to WithSlots.
func (h *Header) NewRecoverySlot(rand io.Reader, root *Root, id uint8) (Slot, RecoveryKey, error) {
	recovery, err := newRecoveryKey(rand)
	if err != nil {
		return Slot{}, RecoveryKey{}, err
	}
	s, err := h.newSlot(rand, root, Slot{ID: id, Kind: SlotRecovery}, recovery[:])
	if err != nil {
		return Slot{}, RecoveryKey{}, err
	}
	return s, recovery, nil
}

func (h *Header) newSlot(rand io.Reader, root *Root, s Slot, secret []byte) (Slot, error) {
	if !root.live {
		return Slot{}, errors.New("keys: cannot make a slot for a root key that was wiped")
	}
	if err := s.validate(); err != nil {
		return Slot{}, err
	}
	if err := s.seal(rand, h.Cluster, secret, root); err != nil {
		return Slot{}, err
	}
	return s, nil
}

// WithSlots returns the header that follows h: the next serial, the given slots
// in place of h's. It refuses an h that root doesn't authenticate, so that an
// altered header is never made authentic, and slots that break the rules stated
// at Header. It can't tell whether the slots open, so they must come from h or
// from its NewPassphraseSlot and NewRecoverySlot with the same root.
func (h *Header) WithSlots(root *Root, slots []Slot) (*Header, error) {
	if err := h.Verify(root); err != nil {
		return nil, err
	}
	if h.Serial == math.MaxUint64 {
		return nil, fmt.Errorf("%w: its serial can't grow any more", ErrHeader)
	}
	next := &Header{Cluster: h.Cluster, Serial: h.Serial + 1, Slots: slices.Clone(slots)}
	if err := next.validate(); err != nil {
		return nil, err
	}
	next.mac = next.computeMAC(root)
	return next, nil
}

// UnlockPassphrase unwraps the root key with the passphrase and authenticates
// the header with it. It takes the time and memory that the header asks for,
// within the limits stated at Argon2.
//
// A passphrase that opens no slot gives ErrWrongKey itself. One that does, in a
// header that was altered elsewhere, gives an error that wraps ErrHeader.
func (h *Header) UnlockPassphrase(passphrase []byte) (*Root, error) {
	return h.unlock(SlotPassphrase, passphrase)
}

// UnlockRecovery is UnlockPassphrase for the recovery key. It takes no time or
// memory to speak of.
func (h *Header) UnlockRecovery(k RecoveryKey) (*Root, error) {
	defer clear(k[:])
	return h.unlock(SlotRecovery, k[:])
}

func (h *Header) unlock(kind SlotKind, secret []byte) (*Root, error) {
	// A header made by hand rather than by ParseHeader is held to the same
	// limits.
	if err := h.validate(); err != nil {
		return nil, err
	}
	for i := range h.Slots {
		if h.Slots[i].Kind != kind {
			continue
		}
		root, ok := h.Slots[i].open(h.Cluster, secret)
		if !ok {
			continue
		}
		if err := h.Verify(root); err != nil {
			root.Wipe()
			return nil, err
		}
		return root, nil
	}
	return nil, ErrWrongKey
}

// Verify reports whether the header was made by somebody who held root, as it
// is, slots and serial included. If not, the error wraps ErrHeader.
func (h *Header) Verify(root *Root) error {
	if err := h.validate(); err != nil {
		return err
	}
	mac := h.computeMAC(root)
	if !hmac.Equal(mac[:], h.mac[:]) {
		return fmt.Errorf("%w: it was altered, or belongs to other keys", ErrHeader)
	}
	return nil
}

func (h *Header) computeMAC(root *Root) [macSize]byte {
	key := root.Derive(PurposeHeaderMAC)
	defer clear(key)
	m := hmac.New(sha256.New, key)
	m.Write(h.body())
	return [macSize]byte(m.Sum(nil))
}

// body is the header up to its MAC.
func (h *Header) body() []byte {
	b := make([]byte, 0, headerSize(len(h.Slots)))
	b = append(b, headerMagic...)
	b = binary.BigEndian.AppendUint16(b, headerVersion)
	b = append(b, h.Cluster[:]...)
	b = binary.BigEndian.AppendUint64(b, h.Serial)
	b = append(b, byte(len(h.Slots)))
	for i := range h.Slots {
		b = h.Slots[i].append(b)
	}
	return b
}

// Marshal returns the header's bytes, which ParseHeader reads.
func (h *Header) Marshal() []byte {
	b := append(h.body(), h.mac[:]...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

// ParseHeader reads a key header. It accepts exactly what Marshal writes; any
// other bytes give an error that wraps ErrHeader. The header is intact then, but
// not yet authentic: anybody can write one that parses.
func ParseHeader(b []byte) (*Header, error) {
	if err := checkEnvelope(b); err != nil {
		return nil, err
	}
	if v := binary.BigEndian.Uint16(b[len(headerMagic):]); v != headerVersion {
		return nil, &VersionError{v}
	}
	if len(b) < headerFixed {
		return nil, fmt.Errorf("%w: its size doesn't fit its contents", ErrHeader)
	}
	h := &Header{
		Cluster: ClusterID(b[headerStart:]),
		Serial:  binary.BigEndian.Uint64(b[headerStart+16:]),
	}
	// The count is bounded by the size of b, which is bounded by MaxHeader.
	count := int(b[headerFixed-1])
	if len(b) != headerSize(count) {
		return nil, fmt.Errorf("%w: its size doesn't fit its contents", ErrHeader)
	}
	h.Slots = make([]Slot, count)
	for i := range h.Slots {
		h.Slots[i] = parseSlot(b[headerFixed+i*slotSize:])
	}
	h.mac = [macSize]byte(b[headerFixed+count*slotSize:])
	if err := h.validate(); err != nil {
		return nil, err
	}
	return h, nil
}

// VersionError says that an undamaged key header has a format version that this
// program doesn't read. It wraps ErrHeader.
type VersionError struct {
	// Version is the header's.
	Version uint16
}

func (e *VersionError) Error() string {
	return fmt.Sprintf("%v: its format version is %d and this program reads version %d; use the pcctl that wrote it", ErrHeader, e.Version, headerVersion)
}

// Unwrap returns ErrHeader.
func (e *VersionError) Unwrap() error { return ErrHeader }

// Newer reports whether the header was written by a later program.
func (e *VersionError) Newer() bool { return e.Version > headerVersion }

// checkEnvelope checks what every version of the format has in common: the
// magic, and a SHA-256 of the rest at the end. Checking it before the version
// tells a damaged header from a newer one.
func checkEnvelope(b []byte) error {
	switch {
	case len(b) > MaxHeader:
		return fmt.Errorf("%w: it is larger than %d bytes", ErrHeader, MaxHeader)
	case len(b) < headerStart+sha256.Size:
		return fmt.Errorf("%w: it is cut short", ErrHeader)
	case string(b[:len(headerMagic)]) != headerMagic:
		return fmt.Errorf("%w: it doesn't begin as one", ErrHeader)
	}
	body, want := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], want) {
		return fmt.Errorf("%w: it is cut short or damaged (its checksum doesn't match)", ErrHeader)
	}
	return nil
}

// headerSize is the size in bytes of a header with so many slots.
func headerSize(slots int) int {
	return headerFixed + slots*slotSize + macSize + sha256.Size
}

// validate checks the rules stated at Header and the limits stated at Argon2.
func (h *Header) validate() error {
	if h.Serial == 0 {
		return fmt.Errorf("%w: its serial is 0", ErrHeader)
	}
	if len(h.Slots) > MaxSlots {
		return fmt.Errorf("%w: it has %d slots, more than %d", ErrHeader, len(h.Slots), MaxSlots)
	}
	var work uint64
	var ids [256]bool
	var kinds [256]bool
	for i := range h.Slots {
		s := &h.Slots[i]
		if err := s.validate(); err != nil {
			return err
		}
		if ids[s.ID] {
			return fmt.Errorf("%w: two slots have the ID %d", ErrHeader, s.ID)
		}
		ids[s.ID], kinds[s.Kind] = true, true
		work += s.Argon2.work()
	}
	if !kinds[SlotPassphrase] || !kinds[SlotRecovery] {
		return fmt.Errorf("%w: it lacks a passphrase slot or a recovery slot", ErrHeader)
	}
	if work > maxWork {
		return fmt.Errorf("%w: its passphrase slots ask for more Argon2id work than is allowed", ErrHeader)
	}
	return nil
}
