package header

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"io"

	"golang.org/x/crypto/chacha20poly1305"

	"powercloud.unidatum.com/go/cluster/volumeid"
)

// label begins what keys are derived for and wrapped keys are bound to.
const label = "powercloud v1 volume "

// KeySize is the size of a Key in bytes.
const KeySize = 32

// SectorKeySize is the size in bytes of the key that SectorKey returns: 64 for
// AES-256 in XTS mode and 32 for HMAC-SHA256.
const SectorKeySize = 96

// Key is a volume key, or one that wraps it. Wipe it when it isn't needed any more.
type Key [KeySize]byte

// Wipe overwrites the key with zeros.
func (k *Key) Wipe() { clear(k[:]) }

// SectorKey returns the key of a volume's sectors: for AES-256-XTS, followed by the
// one for HMAC-SHA256. The caller wipes it.
func (k *Key) SectorKey(volume volumeid.ID) ([]byte, error) {
	return k.derive(volume, "sectors", SectorKeySize)
}

// derive returns size bytes for one purpose.
func (k *Key) derive(volume volumeid.ID, purpose string, size int) ([]byte, error) {
	derived, err := hkdf.Key(sha256.New, k[:], volume[:], label+purpose, size)
	if err != nil {
		return nil, fmt.Errorf("derive the volume's %s key: %w", purpose, err)
	}
	return derived, nil
}

// SlotKind says what opens a slot.
type SlotKind uint8

// The kinds of slots.
const (
	// SlotAdmin has the volume key as Wrap wraps it, under a key that pcctl derives.
	SlotAdmin SlotKind = 1
	// SlotTPM has what a TPM unlocks the volume by, and SlotPeers what shares held by
	// other nodes do. Their content is not this package's.
	SlotTPM   SlotKind = 2
	SlotPeers SlotKind = 3
)

// String returns "admin", "TPM" or "peers".
func (k SlotKind) String() string {
	switch k {
	case SlotAdmin:
		return "admin"
	case SlotTPM:
		return "TPM"
	case SlotPeers:
		return "peers"
	}
	return fmt.Sprintf("SlotKind(%d)", uint8(k))
}

// Slot is one way to unlock a volume.
type Slot struct {
	Kind SlotKind
	// Content has 1 to MaxContent bytes; an admin slot has WrappedSize.
	Content []byte
}

func (s Slot) validate() error {
	switch {
	case s.Kind < SlotAdmin || s.Kind > SlotPeers:
		return fmt.Errorf("%w: slot kind %d is unknown", ErrHeader, uint8(s.Kind))
	case s.Kind == SlotAdmin && len(s.Content) != WrappedSize, len(s.Content) == 0, len(s.Content) > MaxContent:
		return fmt.Errorf("%w: its %s slot has %d bytes", ErrHeader, s.Kind, len(s.Content))
	}
	return nil
}

// WrappedSize is the size in bytes of a wrapped key.
const WrappedSize = chacha20poly1305.NonceSizeX + KeySize + chacha20poly1305.Overhead

// Wrap wraps a volume key under another key, for one kind of slot of one volume.
// rand must be a cryptographically secure source.
func Wrap(rand io.Reader, volume volumeid.ID, kind SlotKind, key, wrapping *Key) ([]byte, error) {
	aead, err := chacha20poly1305.NewX(wrapping[:])
	if err != nil {
		return nil, fmt.Errorf("wrap the volume key: %w", err)
	}
	nonce := make([]byte, chacha20poly1305.NonceSizeX, WrappedSize)
	if _, err := io.ReadFull(rand, nonce); err != nil {
		return nil, fmt.Errorf("wrap the volume key: %w", err)
	}
	return aead.Seal(nonce, nonce, key[:], associated(volume, kind)), nil
}

// Unwrap undoes Wrap. With another key than the one that it was wrapped under, or
// for another volume or kind of slot, the error is ErrWrongKey.
func Unwrap(volume volumeid.ID, kind SlotKind, wrapped []byte, wrapping *Key) (*Key, error) {
	if len(wrapped) != WrappedSize {
		return nil, fmt.Errorf("%w: a wrapped key has %d bytes", ErrHeader, len(wrapped))
	}
	aead, err := chacha20poly1305.NewX(wrapping[:])
	if err != nil {
		return nil, fmt.Errorf("unwrap the volume key: %w", err)
	}
	key := new(Key)
	// The capacity is the key's own size, so that what is opened lands in it and
	// nowhere else.
	nonce, sealed := wrapped[:chacha20poly1305.NonceSizeX], wrapped[chacha20poly1305.NonceSizeX:]
	if _, err := aead.Open(key[:0], nonce, sealed, associated(volume, kind)); err != nil {
		key.Wipe()
		return nil, ErrWrongKey
	}
	return key, nil
}

// associated is what a wrapped key is bound to.
func associated(volume volumeid.ID, kind SlotKind) []byte {
	return append(append([]byte(label+"slot"), volume[:]...), byte(kind))
}
