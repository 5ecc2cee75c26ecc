package dir

import "golang.org/x/sys/unix"

// Sync makes the file's data outlast a power cut.
func (f fdFile) Sync() error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(int(f)) })
	return err
}

// renameExclusive renames a file to a name that must be free. What the file system
// can't do is EINVAL, as renameat2(2) says.
func renameExclusive(from int, name string, to int, newName string) error {
	return unix.Renameat2(from, name, to, newName, unix.RENAME_NOREPLACE)
}
