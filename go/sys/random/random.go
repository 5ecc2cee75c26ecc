// Package random looks after the kernel's random number generator while the
// machine starts: it adds what makes this machine and this boot different from
// others, and waits until the generator is ready.
package random

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Device is where bytes are added to the kernel's generator.
const Device = "/dev/urandom"

// maxSource is how many bytes are read of one source.
const maxSource = 64 << 10

// Mix adds files, those that can be read, and bytes to the kernel's generator.
// They are hashed first and are never counted as entropy: what they hold may be
// known to others. So Mix can't do harm, and helps where the generator has
// little, as in two copies of one virtual machine.
func Mix(device string, files []string, more ...[]byte) error {
	digest := sha256.New()
	for _, name := range files {
		add(digest, name)
	}
	for _, b := range more {
		_, _ = fmt.Fprintf(digest, "%d\n", len(b))
		_, _ = digest.Write(b)
	}
	_, _ = fmt.Fprintln(digest, time.Now().UnixNano())
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(digest.Sum(nil))
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("add to the random number generator: %w", err)
	}
	return nil
}

// add hashes the beginning of a file. Devices that have nothing at present must
// not hold the boot.
func add(digest hash.Hash, name string) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), name)
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		// A hardware generator: a few bytes are as good as many.
		b := make([]byte, 64)
		n, _ := unix.Read(fd, b)
		_, _ = digest.Write(b[:max(n, 0)])
		return
	}
	n, _ := io.Copy(digest, io.LimitReader(f, maxSource))
	_, _ = fmt.Fprintf(digest, "%s %d\n", name, n)
}

// Ready tells whether the kernel's generator has been seeded.
func Ready() (bool, error) {
	_, err := unix.Getrandom(make([]byte, 1), unix.GRND_NONBLOCK)
	if errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ask whether random numbers are ready: %w", err)
	}
	return true, nil
}

// Wait waits until the kernel's generator has been seeded or ctx is done.
func Wait(ctx context.Context) error {
	ready := make(chan error, 1)
	go func() {
		// It returns as soon as the generator is seeded, and can't be
		// interrupted; the kernel seeds it sooner or later by itself.
		_, err := unix.Getrandom(make([]byte, 1), 0)
		ready <- err
	}()
	select {
	case err := <-ready:
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for random numbers: %w", err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for random numbers: %w", ctx.Err())
	}
}
