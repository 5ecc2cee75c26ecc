package keys

import (
	"fmt"
	"io"

	"powercloud.unidatum.com/go/keys/code"
)

// RecoveryKey opens a cluster without the passphrase: 160 random bits, shown to
// the owner once and stored only by them. Having that much entropy, it needs no
// stretching.
type RecoveryKey [20]byte

// String returns the key as it is shown to its owner, who writes it down: eight
// groups of four base32 letters with dashes between them. It is a secret: don't
// log it.
func (k RecoveryKey) String() string {
	return code.Format(k[:])
}

// ParseRecoveryKey reads a recovery key as people type it (package code says
// what is forgiven). Its error doesn't repeat any of s.
func ParseRecoveryKey(s string) (RecoveryKey, error) {
	var k RecoveryKey
	b, err := code.Parse(s, len(k))
	if err != nil {
		return RecoveryKey{}, fmt.Errorf("keys: cannot read the recovery key; type its 32 letters and digits as they were written down: %w", err)
	}
	copy(k[:], b)
	clear(b)
	return k, nil
}

func newRecoveryKey(rand io.Reader) (RecoveryKey, error) {
	var k RecoveryKey
	if _, err := io.ReadFull(rand, k[:]); err != nil {
		return RecoveryKey{}, fmt.Errorf("keys: cannot read random bytes for the recovery key: %w", err)
	}
	return k, nil
}
