// Package keyring hands keys to the kernel by its keyring, for as long as one
// function runs.
package keyring

import (
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Type is the type of the keys: no program can read one of it, only the kernel.
const Type = "logon"

// With has the kernel hold a key under a description, which must have a prefix and
// a colon, while use runs on a thread of its own. No other thread can use the key.
// The kernel has wiped its copy, except for what use had it keep, when With
// returns. The caller's copy is the caller's to wipe.
func With(description string, key []byte, use func() error) error {
	done := make(chan error)
	go func() {
		// The thread ends with this goroutine, since it stays locked, and its
		// keyring with it.
		runtime.LockOSThread()
		done <- hold(description, key, use)
	}()
	return <-done
}

func hold(description string, key []byte, use func() error) (err error) {
	id, err := unix.AddKey(Type, description, key, unix.KEY_SPEC_THREAD_KEYRING)
	if err != nil {
		return fmt.Errorf("hand the key %s to the kernel: %w", description, err)
	}
	defer func() {
		// Invalidating takes it from the keyring at once.
		if _, invalidErr := unix.KeyctlInt(unix.KEYCTL_INVALIDATE, id, 0, 0, 0); invalidErr != nil {
			err = errors.Join(err, fmt.Errorf("have the kernel forget the key %s: %w", description, invalidErr))
		}
	}()
	return use()
}
