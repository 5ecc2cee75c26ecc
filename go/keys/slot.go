package keys

import (
	"crypto/cipher"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"io"

	"golang.org/x/crypto/chacha20poly1305"
)

// SlotKind says which secret opens a slot.
type SlotKind uint8

// The kinds of slots.
const (
	SlotPassphrase SlotKind = 1
	SlotRecovery   SlotKind = 2
)

// String returns "passphrase" or "recovery".
func (k SlotKind) String() string {
	switch k {
	case SlotPassphrase:
		return "passphrase"
	case SlotRecovery:
		return "recovery"
	}
	return fmt.Sprintf("SlotKind(%d)", uint8(k))
}

const (
	saltSize   = 16
	nonceSize  = chacha20poly1305.NonceSizeX
	commitSize = 32
	sealedSize = rootSize + chacha20poly1305.Overhead
	// slotPublicSize is the part of a slot that the sealed root is bound to.
	slotPublicSize = 1 + 1 + 4 + 1 + 1 + saltSize + nonceSize + commitSize
	slotSize       = slotPublicSize + sealedSize
	slotLabel      = label + "slot"
)

// Slot is the root key wrapped under one secret. Slots come from a Header or
// from its NewPassphraseSlot and NewRecoverySlot; they are values and may be
// copied.
type Slot struct {
	// ID tells the slots of a header apart, and stays with a slot for life. It
	// is at least 1.
	ID uint8
	// Kind is the kind of secret that opens the slot.
	Kind SlotKind
	// Argon2 is how a passphrase is stretched; zero in a recovery slot.
	Argon2 Argon2

	salt       [saltSize]byte
	nonce      [nonceSize]byte
	commitment [commitSize]byte
	sealed     [sealedSize]byte
}

// stretched returns the secret that keys the slot: the passphrase after
// Argon2id, or the recovery key as it is. The caller clears it.
func (s *Slot) stretched(secret []byte) []byte {
	if s.Kind == SlotPassphrase {
		return s.Argon2.stretch(secret, s.salt[:])
	}
	return append([]byte(nil), secret...)
}

// seal fills the slot's random fields from rand and wraps root under secret. ID,
// Kind and Argon2 must be set.
func (s *Slot) seal(rand io.Reader, cluster ClusterID, secret []byte, root *Root) error {
	for _, field := range [][]byte{s.salt[:], s.nonce[:]} {
		if _, err := io.ReadFull(rand, field); err != nil {
			return fmt.Errorf("keys: cannot read random bytes for a %s slot: %w", s.Kind, err)
		}
	}
	aead, commitment := s.derive(cluster, secret)
	s.commitment = commitment
	aead.Seal(s.sealed[:0], s.nonce[:], root.key[:], s.associated(cluster))
	return nil
}

// open unwraps the root key; ok is false when the secret is wrong or the slot
// was altered. The header's MAC still has to be checked.
func (s *Slot) open(cluster ClusterID, secret []byte) (root *Root, ok bool) {
	aead, commitment := s.derive(cluster, secret)
	if subtle.ConstantTimeCompare(commitment[:], s.commitment[:]) != 1 {
		return nil, false
	}
	root = new(Root)
	// The capacity is the key's own size, so that what is opened lands in it
	// and nowhere else.
	if _, err := aead.Open(root.key[:0], s.nonce[:], s.sealed[:], s.associated(cluster)); err != nil {
		root.Wipe()
		return nil, false
	}
	root.live = true
	return root, true
}

// derive computes the slot's cipher and the commitment to its key.
//
// The commitment is there because XChaCha20-Poly1305 isn't committing: a
// location could craft one ciphertext that opens under the keys of many
// passphrases it guesses, and learn from whether unlocking went on if the
// right one was among them. With the commitment, which is compared first, an
// altered slot can be made to fit one guess at most.
func (s *Slot) derive(cluster ClusterID, secret []byte) (cipher.AEAD, [commitSize]byte) {
	stretched := s.stretched(secret)
	defer clear(stretched)
	info := slotLabel + string(cluster[:]) + string([]byte{byte(s.Kind), s.ID})
	okm := expand(stretched, s.salt[:], info, keySize+commitSize)
	defer clear(okm)
	aead, err := chacha20poly1305.NewX(okm[:keySize])
	if err != nil {
		panic("keys: XChaCha20-Poly1305 refused a key of its own size: " + err.Error())
	}
	return aead, [commitSize]byte(okm[keySize:])
}

// associated is what the sealed root key is bound to: the cluster and all of
// the slot that isn't sealed.
func (s *Slot) associated(cluster ClusterID) []byte {
	b := make([]byte, 0, len(slotLabel)+len(cluster)+slotPublicSize)
	b = append(b, slotLabel...)
	b = append(b, cluster[:]...)
	return s.appendPublic(b)
}

func (s *Slot) appendPublic(b []byte) []byte {
	b = append(b, byte(s.Kind), s.ID)
	b = binary.BigEndian.AppendUint32(b, s.Argon2.Memory)
	b = append(b, s.Argon2.Passes, s.Argon2.Lanes)
	b = append(b, s.salt[:]...)
	b = append(b, s.nonce[:]...)
	return append(b, s.commitment[:]...)
}

func (s *Slot) append(b []byte) []byte {
	return append(s.appendPublic(b), s.sealed[:]...)
}

// parseSlot reads slotSize bytes. Its values are not validated yet.
func parseSlot(b []byte) Slot {
	s := Slot{
		Kind: SlotKind(b[0]),
		ID:   b[1],
		Argon2: Argon2{
			Memory: binary.BigEndian.Uint32(b[2:]),
			Passes: b[6],
			Lanes:  b[7],
		},
	}
	b = b[8:]
	for _, field := range [][]byte{s.salt[:], s.nonce[:], s.commitment[:], s.sealed[:]} {
		b = b[copy(field, b):]
	}
	return s
}

func (s *Slot) validate() error {
	if s.ID == 0 {
		return fmt.Errorf("%w: a slot has the ID 0", ErrHeader)
	}
	switch s.Kind {
	case SlotPassphrase:
		return s.Argon2.validate()
	case SlotRecovery:
		if s.Argon2 != (Argon2{}) {
			return fmt.Errorf("%w: a recovery slot has Argon2id parameters", ErrHeader)
		}
		return nil
	}
	return fmt.Errorf("%w: slot kind %d is unknown", ErrHeader, uint8(s.Kind))
}
