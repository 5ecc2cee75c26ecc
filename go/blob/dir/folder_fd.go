//go:build linux || darwin

package dir

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/blob"
)

// fdFolder is a folder by its file descriptor. Every step is one system call
// relative to it, where os.Root opens each folder on the way again.
type fdFolder struct {
	fd      int
	cleanup runtime.Cleanup
	// dev and ino say which folder it is, of the location's own only.
	dev, ino uint64
}

func newFdFolder(fd int) *fdFolder {
	f := &fdFolder{fd: fd}
	f.cleanup = runtime.AddCleanup(f, func(fd int) { _ = unix.Close(fd) }, fd)
	return f
}

// openRoot opens the location's own folder. A symbolic link there is the user's
// and followed.
func openRoot(path string) (folder, error) {
	fd, err := retry(func() (int, error) {
		return unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return nil, err
	}
	f := newFdFolder(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.close()
		return nil, err
	}
	f.dev, f.ino = uint64(st.Dev), st.Ino
	return f, nil
}

// folderLimit returns how many folders a location may keep open: few where the
// system allows few files, since other locations and files need theirs.
func folderLimit() int {
	const share = 32
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur/share, uint64(placeCount)))
}

func (f *fdFolder) open(name string) (folder, error) {
	fd, err := f.openat(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.ELOOP):
		return nil, errNotFolder
	case err != nil:
		return nil, err
	}
	return newFdFolder(fd), nil
}

func (f *fdFolder) openat(name string, flags int, mode uint32) (int, error) {
	defer runtime.KeepAlive(f)
	return retry(func() (int, error) { return unix.Openat(f.fd, name, flags|unix.O_CLOEXEC, mode) })
}

func (f *fdFolder) make(name string) error {
	defer runtime.KeepAlive(f)
	return unix.Mkdirat(f.fd, name, 0o700)
}

func (f *fdFolder) create(name string) (file, error) {
	fd, err := f.openat(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return fdFile(fd), nil
}

func (f *fdFolder) read(name string, buf []byte, limit int64) ([]byte, error) {
	// Without O_NONBLOCK, opening a FIFO would wait for its writer.
	fd, err := f.openat(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENXIO):
		// A link, or a socket or device without a driver.
		return nil, errNotRegular
	case err != nil:
		return nil, err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, errNotRegular
	case st.Size > limit:
		return nil, blob.ErrTooLarge
	}
	return readAll(fdFile(fd), buf, st.Size)
}

func (f *fdFolder) stat(name string) (status, error) {
	defer runtime.KeepAlive(f)
	var st unix.Stat_t
	if err := unix.Fstatat(f.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return status{}, err
	}
	return status{
		regular:  st.Mode&unix.S_IFMT == unix.S_IFREG,
		size:     st.Size,
		modified: time.Unix(st.Mtim.Unix()),
		inode:    st.Ino,
	}, nil
}

func (f *fdFolder) rename(name string, to folder, newName string) error {
	target := to.(*fdFolder)
	defer runtime.KeepAlive(f)
	defer runtime.KeepAlive(target)
	return unix.Renameat(f.fd, name, target.fd, newName)
}

func (f *fdFolder) renameNew(name string, to folder, newName string) error {
	target := to.(*fdFolder)
	defer runtime.KeepAlive(f)
	defer runtime.KeepAlive(target)
	err := renameExclusive(f.fd, name, target.fd, newName)
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return f.linkNew(name, target, newName)
}

// linkNew is renameNew on a file system that can't rename so, but may have hard links.
func (f *fdFolder) linkNew(name string, to *fdFolder, newName string) error {
	defer runtime.KeepAlive(f)
	defer runtime.KeepAlive(to)
	if err := unix.Linkat(f.fd, name, to.fd, newName, 0); err != nil {
		return err
	}
	// What can't be removed now, gc removes later.
	_ = f.remove(name)
	return nil
}

func (f *fdFolder) remove(name string) error {
	defer runtime.KeepAlive(f)
	return unix.Unlinkat(f.fd, name, 0)
}

func (f *fdFolder) names(fn func([]string) error) error {
	// A descriptor of its own, since reading moves the position.
	fd, err := f.openat(".", unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	entries := os.NewFile(uintptr(fd), ".")
	defer entries.Close()
	return listBatches(entries.Readdirnames, fn)
}

// settled is how old a folder's last change must be, so that the next one can't
// have the same time: many ticks of the clock that a kernel takes it from, and
// where the file system counts in whole seconds, some of these.
const (
	settled       = 100 * time.Millisecond
	settledCoarse = 3 * time.Second
)

func (f *fdFolder) mark(now time.Time) (string, error) {
	defer runtime.KeepAlive(f)
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return "", err
	}
	// Unlike the time of modification, nobody can set this one back.
	changed := time.Unix(st.Ctim.Unix())
	wait := settled
	if changed.Nanosecond() == 0 {
		wait = settledCoarse
	}
	if now.Sub(changed) < wait || st.Nlink == 0 || !exactTimes(f.fd) {
		return "", nil
	}
	return strings.Join([]string{
		strconv.FormatUint(st.Ino, 16),
		strconv.FormatInt(st.Mtim.Nano(), 16),
		strconv.FormatInt(st.Ctim.Nano(), 16),
	}, "-"), nil
}

func (f *fdFolder) lock() (unlock func(), busy bool) {
	_, err := retry(func() (int, error) { return 0, unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB) })
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil, true
	case err != nil:
		return func() {}, false
	}
	return func() {
		_ = unix.Flock(f.fd, unix.LOCK_UN)
		runtime.KeepAlive(f)
	}, false
}

func (f *fdFolder) sync() error {
	defer runtime.KeepAlive(f)
	err := fdFile(f.fd).Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		// The file system has no such thing for folders, and never needs it or
		// never can.
		return nil
	}
	return err
}

func (f *fdFolder) removed() bool {
	defer runtime.KeepAlive(f)
	var st unix.Stat_t
	return unix.Fstat(f.fd, &st) != nil || st.Nlink == 0
}

func (f *fdFolder) isAt(path string) (bool, error) {
	var there unix.Stat_t
	switch err := unix.Stat(path, &there); {
	case errors.Is(err, unix.ENOENT):
		return false, nil
	case err != nil:
		return false, err
	}
	return f.dev == uint64(there.Dev) && f.ino == there.Ino, nil
}

func (f *fdFolder) close() {
	f.cleanup.Stop()
	_ = unix.Close(f.fd)
}

// fdFile is an open file by its descriptor.
type fdFile int

func (f fdFile) Read(p []byte) (int, error) {
	return retry(func() (int, error) { return unix.Read(int(f), p) })
}

func (f fdFile) Write(p []byte) (int, error) {
	return retry(func() (int, error) { return unix.Write(int(f), p) })
}

// Close reports what a file system only finds out then, such as a quota on NFS.
// It is not tried again: the descriptor is gone whatever it returns.
func (f fdFile) Close() error {
	if err := unix.Close(int(f)); !errors.Is(err, unix.EINTR) {
		return err
	}
	return nil
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
