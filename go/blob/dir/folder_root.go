package dir

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"runtime"
	"sync/atomic"
	"time"

	"powercloud.unidatum.com/go/blob"
)

// rootFolder is a folder by its path below an os.Root, which keeps every step
// inside. It is what systems without the calls of fdFolder use; the tests run it
// everywhere.
type rootFolder struct {
	root *os.Root
	path string
	// written counts the files created, for rootFile.
	written *atomic.Uint32
}

// openRootFolder opens the location's own folder.
func openRootFolder(path string) (folder, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	written := &atomic.Uint32{}
	written.Store(rand.Uint32())
	return rootFolder{root, ".", written}, nil
}

func (f rootFolder) at(name string) string { return path.Join(f.path, name) }

func (f rootFolder) open(name string) (folder, error) {
	info, err := f.root.Lstat(f.at(name))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case !info.IsDir():
		return nil, errNotFolder
	}
	return rootFolder{f.root, f.at(name), f.written}, nil
}

func (f rootFolder) make(name string) error {
	return withoutPath(f.root.Mkdir(f.at(name), 0o700))
}

func (f rootFolder) create(name string) (file, error) {
	created, err := f.root.OpenFile(f.at(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, withoutPath(err)
	}
	return rootFile{created, f, name}, nil
}

// rootFile is a file being written. There is no inode to tell two versions of a
// blob apart, and the system's time of writing may stand still for milliseconds:
// what is below a millisecond in it is made to differ.
type rootFile struct {
	*os.File
	in   rootFolder
	name string
}

// Sync sets the time of writing, then syncs.
func (f rootFile) Sync() error {
	// Windows keeps multiples of 100 ns.
	const unit, units = 100 * time.Nanosecond, uint32(time.Millisecond / (100 * time.Nanosecond))
	below := time.Duration(f.in.written.Add(1)%units) * unit
	now := time.Now().Truncate(time.Millisecond).Add(below)
	if err := f.in.root.Chtimes(f.in.at(f.name), now, now); err != nil {
		return withoutPath(err)
	}
	return f.File.Sync()
}

func (f rootFolder) read(name string, buf []byte, limit int64) ([]byte, error) {
	// Looked at before it is opened: opening a FIFO would wait for its writer.
	info, err := f.root.Lstat(f.at(name))
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	}
	opened, err := f.root.Open(f.at(name))
	if err != nil {
		return nil, withoutPath(err)
	}
	defer opened.Close()
	info, err = opened.Stat()
	switch {
	case err != nil:
		return nil, withoutPath(err)
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	case info.Size() > limit:
		return nil, blob.ErrTooLarge
	}
	return readAll(opened, buf, info.Size())
}

func (f rootFolder) stat(name string) (status, error) {
	info, err := f.root.Lstat(f.at(name))
	if err != nil {
		return status{}, withoutPath(err)
	}
	return status{regular: info.Mode().IsRegular(), size: info.Size(), modified: info.ModTime()}, nil
}

func (f rootFolder) lock() (unlock func(), busy bool) { return func() {}, false }

func (f rootFolder) rename(name string, to folder, newName string) error {
	return withoutPaths(f.root.Rename(f.at(name), to.(rootFolder).at(newName)))
}

func (f rootFolder) renameNew(name string, to folder, newName string) error {
	if err := f.root.Link(f.at(name), to.(rootFolder).at(newName)); err != nil {
		return withoutPaths(err)
	}
	// What can't be removed now, gc removes later.
	_ = f.remove(name)
	return nil
}

// withoutPaths takes the two paths out of an error of package os.
func withoutPaths(err error) error {
	var link *os.LinkError
	if errors.As(err, &link) {
		return link.Err
	}
	return err
}

func (f rootFolder) remove(name string) error {
	// Root.Remove removes empty folders too, which a folder here must not.
	info, err := f.root.Lstat(f.at(name))
	switch {
	case err != nil:
		return withoutPath(err)
	case info.IsDir():
		return errNotRegular
	}
	return withoutPath(f.root.Remove(f.at(name)))
}

func (f rootFolder) names(fn func([]string) error) error {
	opened, err := f.root.Open(f.path)
	if err != nil {
		return withoutPath(err)
	}
	defer opened.Close()
	return listBatches(opened.Readdirnames, fn)
}

// mark returns none: what os.Root tells of times isn't exact everywhere.
func (f rootFolder) mark(time.Time) (string, error) { return "", nil }

// sync does nothing on Windows, which can't sync a folder opened for reading;
// NTFS writes renames to its journal in order.
func (f rootFolder) sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := f.root.Open(f.path)
	if err != nil {
		return withoutPath(err)
	}
	defer opened.Close()
	return withoutPath(opened.Sync())
}

func (f rootFolder) removed() bool {
	_, err := f.root.Lstat(f.path)
	return errors.Is(err, fs.ErrNotExist)
}

func (f rootFolder) isAt(path string) (bool, error) {
	own, err := f.root.Stat(".")
	if err != nil {
		return false, withoutPath(err)
	}
	there, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, withoutPath(err)
	}
	return os.SameFile(own, there), nil
}

// close does nothing: the os.Root is shared, and closed when no folder refers to
// it any more.
func (f rootFolder) close() {}
