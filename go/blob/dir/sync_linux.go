package dir

import "golang.org/x/sys/unix"

// Sync makes the file's data outlast a power cut.
func (f fdFile) Sync() error {
	_, err := retry(func() (int, error) { return 0, unix.Fsync(int(f)) })
	return err
}
