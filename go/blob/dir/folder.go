package dir

import (
	"errors"
	"io"
	"io/fs"
	"time"
)

// errNotRegular says that something other than a file stands where a blob's file
// belongs: a symbolic link, a folder, a FIFO, a device.
var errNotRegular = errors.New("it is not a regular file")

// errNotFolder says that something other than a folder, a symbolic link
// included, stands where one of the location's folders belongs.
var errNotFolder = errors.New("it is not a folder (a symbolic link inside a location is not followed)")

// folder is an open folder of a location. It is reached without following a
// symbolic link, and no method follows one: whoever can write to the location
// can't lead a reader or writer out of it. Names are single path elements.
//
// Errors keep their fs.ErrNotExist and fs.ErrExist.
type folder interface {
	// open opens a folder in this one.
	open(name string) (folder, error)
	// make makes a folder of mode 0700 in this one.
	make(name string) error
	// create makes a file of mode 0600 that wasn't there and opens it.
	create(name string) (file, error)
	// read reads a whole regular file into buf's memory when that is enough. It
	// returns blob.ErrTooLarge for a file of more than limit bytes.
	read(name string, buf []byte, limit int64) ([]byte, error)
	// stat describes what is there, without following a link.
	stat(name string) (status, error)
	// rename moves a file to another folder of the location and replaces what
	// was there.
	rename(name string, to folder, newName string) error
	// renameNew moves a file to another folder of the location. A name that is
	// taken there is fs.ErrExist.
	renameNew(name string, to folder, newName string) error
	// remove removes what is there unless it is a folder.
	remove(name string) error
	// names calls fn with the names of what is in the folder, a batch at a time.
	names(fn func([]string) error) error
	// mark returns a mark that changes whenever the folder's entries do, or "" if
	// the folder may still change without a change of its mark.
	mark(now time.Time) (string, error)
	// lock locks the folder against other processes, or reports that one has it
	// locked. Where it can't be locked, it counts as if it were.
	lock() (unlock func(), busy bool)
	// sync makes the folder's entries outlast a power cut.
	sync() error
	// removed reports whether this folder has been removed since it was opened.
	removed() bool
	// isAt reports whether path leads to this very folder, which is the
	// location's own.
	isAt(path string) (bool, error)
	// close gives the handle back. A folder that is not closed is when it is no
	// longer referred to.
	close()
}

// file is a file being written.
type file interface {
	io.WriteCloser
	// Sync makes the file's data outlast a power cut.
	Sync() error
}

// status is what a folder knows about a file.
type status struct {
	regular  bool
	size     int64
	modified time.Time
	// inode is 0 where the system has none to tell.
	inode uint64
}

// batch is how many names a folder lists at a time.
const batch = 1024

// listBatches passes on what a directory reader returns until its end.
func listBatches(read func(n int) ([]string, error), fn func([]string) error) error {
	for {
		names, err := read(batch)
		if len(names) > 0 {
			if err := fn(names); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return withoutPath(err)
		}
	}
}

// withoutPath takes the path out of an error of package os: it is relative to a
// folder, or a name of our own choosing, and the caller names the file.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
