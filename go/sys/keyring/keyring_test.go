package keyring

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

const description = "powercloud:keyring-test"

// find looks for the key as the kernel does for dm-crypt.
func find() error {
	_, err := unix.RequestKey(Type, description, "", 0)
	return err
}

func TestWith(t *testing.T) {
	want := errors.New("what use returns")
	used := false
	err := With(description, []byte("0123456789abcdef"), func() error {
		used = true
		if err := find(); err != nil {
			t.Errorf("while it runs: %v", err)
		}
		id, err := unix.KeyctlSearch(unix.KEY_SPEC_THREAD_KEYRING, Type, description, 0)
		if err != nil {
			t.Errorf("search for it: %v", err)
		}
		if n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, make([]byte, 64), 0); err == nil {
			t.Errorf("%d bytes of the key could be read", n)
		}
		// No other thread has it.
		other := make(chan error)
		go func() { other <- find() }()
		if err := <-other; err == nil {
			t.Error("another thread found it")
		}
		return want
	})
	if !used && (errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM)) {
		t.Skip("there is no keyring here:", err)
	}
	if !errors.Is(err, want) || !used {
		t.Errorf("used: %v, %v", used, err)
	}
	if err := find(); err == nil {
		t.Error("it is still there")
	}
}

func TestRefused(t *testing.T) {
	err := With("without a prefix", []byte("key"), func() error {
		t.Error("it ran without a key")
		return nil
	})
	if err == nil {
		t.Error("a description without a prefix was taken")
	}
}
