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

// renameExclusive renames a file to a name that must be free. What the file system
// can't do is ENOTSUP, as renameatx_np(2) says.
func renameExclusive(from int, name string, to int, newName string) error {
	return unix.RenameatxNp(from, name, to, newName, unix.RENAME_EXCL)
}
