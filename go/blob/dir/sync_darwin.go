package dir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Sync makes the file's data outlast a power cut. On this system fsync leaves
// them in the disk's own cache; F_FULLFSYNC doesn't, but network file systems
// lack it.
func (f fdFile) Sync() error {
	_, err := retry(func() (int, error) { return unix.FcntlInt(uintptr(f), unix.F_FULLFSYNC, 0) })
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTTY) {
		_, err = retry(func() (int, error) { return 0, unix.Fsync(int(f)) })
	}
	return err
}
