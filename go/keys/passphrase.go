package keys

import (
	"errors"
	"fmt"
	"runtime/debug"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// MinPassphrase is the least number of characters (Unicode code points, not
// bytes) in a new passphrase.
const MinPassphrase = 12

// MaxPassphrase is the length of the longest new passphrase, in bytes. Terminals cut
// lines off at about four times that.
const MaxPassphrase = 1024

// CheckPassphrase says whether a new passphrase may be used: UTF-8, at least
// MinPassphrase characters and at most MaxPassphrase bytes, and none that couldn't
// be typed again at a prompt.
// Its error is nil, or one line that doesn't repeat the passphrase.
//
// It is for new passphrases only. Unlocking tries whatever bytes it is given,
// exactly as given: there is no Unicode normalisation.
func CheckPassphrase(passphrase []byte) error {
	if !utf8.Valid(passphrase) {
		return errors.New("keys: the passphrase is not UTF-8 text; choose another or set the terminal to UTF-8")
	}
	count := 0
	for i := 0; i < len(passphrase); count++ {
		r, size := utf8.DecodeRune(passphrase[i:])
		if unicode.IsControl(r) {
			return errors.New("keys: the passphrase holds a line break or another control character, which can't be typed at a prompt; leave it out")
		}
		i += size
	}
	if len(passphrase) > MaxPassphrase {
		return fmt.Errorf("keys: the passphrase is longer than %d bytes, which can't be typed at a prompt", MaxPassphrase)
	}
	if count < MinPassphrase {
		return fmt.Errorf("keys: the passphrase is too short; use at least %d characters", MinPassphrase)
	}
	return nil
}

// Argon2 is the cost of trying one passphrase: the parameters of Argon2id
// (RFC 9106), version 0x13, with a 16-byte salt and a 32-byte result. A header
// carries those its slot was made with, so that later versions can raise them.
//
// The limits on what a header may ask for keep an altered one from exhausting
// the machine: memory at most 1 GiB, passes and lanes at most 16, and at most
// 16 GiB of memory filled over all passes of all slots of a header.
//
// There is no lower limit, because asking for less gains an attacker nothing.
// The parameters are an input of the slot's key and covered by the header's
// MAC, so that a slot with cheaper ones doesn't open; and nothing computed from
// the passphrase under them ever leaves this package.
type Argon2 struct {
	// Memory is in KiB, and at least eight times Lanes.
	Memory uint32
	// Passes over the memory.
	Passes uint8
	// Lanes are filled in parallel.
	Lanes uint8
}

const (
	maxMemory = 1 << 20 // KiB: 1 GiB
	maxPasses = 16
	maxLanes  = 16
	// maxWork is KiB of memory times passes, over all slots of a header.
	maxWork = maxMemory * 16
)

// standardArgon2 is what every new passphrase slot gets: the memory and lanes of
// the product's specification, and two passes. That is four times the memory and
// 2.7 times the work of RFC 9106's second recommended option (64 MiB, three
// passes), and what every command that unlocks a cluster has to wait for.
func standardArgon2() Argon2 {
	return Argon2{Memory: 256 << 10, Passes: 2, Lanes: 4}
}

func (a Argon2) validate() error {
	switch {
	case a.Passes < 1 || a.Passes > maxPasses:
		return fmt.Errorf("%w: a slot asks for %d Argon2id passes, outside 1 to %d", ErrHeader, a.Passes, maxPasses)
	case a.Lanes < 1 || a.Lanes > maxLanes:
		return fmt.Errorf("%w: a slot asks for %d Argon2id lanes, outside 1 to %d", ErrHeader, a.Lanes, maxLanes)
	case a.Memory < 8*uint32(a.Lanes) || a.Memory > maxMemory:
		return fmt.Errorf("%w: a slot asks for %d KiB of Argon2id memory, outside %d to %d", ErrHeader, a.Memory, 8*uint32(a.Lanes), maxMemory)
	}
	return nil
}

func (a Argon2) work() uint64 {
	return uint64(a.Memory) * uint64(a.Passes)
}

// stretch runs Argon2id. The parameters must be valid.
//
// The memory it filled holds values that lead to the key, can't be overwritten
// from here, and while reachable doubles the heap size at which the collector
// next runs. So it is collected and handed back to the system at once: the
// process then peaks at what one run takes however many slots are tried, and
// the system clears the pages before anything else sees them.
func (a Argon2) stretch(passphrase, salt []byte) []byte {
	defer debug.FreeOSMemory()
	preferHugePages(int(a.Memory) << 10)
	return argon2.IDKey(passphrase, salt, uint32(a.Passes), a.Memory, a.Lanes, keySize)
}
