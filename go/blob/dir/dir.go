// Package dir keeps blobs in a directory, such as a disk at home or a share of a
// machine that somebody else runs.
//
// The layout, of which folders have mode 0700 and files 0600:
//
//	ROOT/header
//	ROOT/manifest/ab/<64 hexadecimal digits that begin with ab>
//	ROOT/chunk/ab/<64 hexadecimal digits>
//	ROOT/record/ab/<64 hexadecimal digits>
//	ROOT/tmp/<32 hexadecimal digits>
//
// A blob is written to tmp, synced and renamed to its place. Whoever else can
// write to the directory can destroy blobs, but can't lead a reader or writer
// out of it: no symbolic link inside is followed, and nothing but a regular file
// is read.
package dir

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"

	"powercloud.unidatum.com/go/blob"
)

// piece is how many bytes are written before looking whether the caller has
// given up. Fewer would only cost system calls.
const piece = 256 << 10

// Location is a directory that holds blobs. It keeps some of its folders open
// and gives them back when it is no longer referred to.
type Location struct {
	given string
	// path is given, cleaned. A relative one follows the working directory.
	path     string
	openRoot func(path string) (folder, error)
	limit    int

	tree atomic.Pointer[tree]
	// made says that this Location made its directory.
	made atomic.Bool

	temporary [8]byte // begins the names of this Location's temporary files
	sequence  atomic.Uint64
	amending  sync.Mutex

	flush flushing
}

// tries is how often a read starts again because the directory was replaced.
const tries = 3

var (
	_ blob.Location    = (*Location)(nil)
	_ blob.Temporaries = (*Location)(nil)
	_ blob.Sections    = (*Location)(nil)
)

// New returns the location in the directory of that path. It doesn't look
// whether there is one: a directory that is missing is an empty location, and
// made by the first Put, as long as its parent directory exists. A missing
// parent is an error in every call, so that a disk that isn't mounted doesn't
// pass for an empty location.
func New(path string) (*Location, error) { return newLocation(path, openRoot, folderLimit()) }

func newLocation(path string, open func(string) (folder, error), limit int) (*Location, error) {
	if path == "" {
		return nil, errors.New("the directory's path is empty")
	}
	l := &Location{given: path, path: filepath.Clean(path), openRoot: open, limit: limit}
	l.flush.init()
	_, err := rand.Read(l.temporary[:])
	return l, err
}

// String returns the path as it was given.
func (l *Location) String() string { return l.given }

// Path returns the directory's path, cleaned.
func (l *Location) Path() string { return l.path }

// Probe returns nil when the directory can be opened, or doesn't exist yet and
// its parent does.
func (l *Location) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := l.currentTree(placeRoot)
	if errors.Is(err, errAbsent) {
		return nil
	}
	return err
}

// Put stores a blob; see blob.Location.
func (l *Location) Put(ctx context.Context, name blob.Name, data []byte) error {
	return l.store(ctx, name, data, folder.rename)
}

// install moves a temporary file to its place.
type install func(temporary folder, temporaryName string, to folder, name string) error

// store writes a blob to a temporary file and installs it.
func (l *Location) store(ctx context.Context, name blob.Name, data []byte, in install) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	err := l.put(ctx, name, data, in)
	if errors.Is(err, fs.ErrNotExist) {
		// A folder was removed since it was opened, or the temporary file was:
		// once more, with the folders as they are now.
		if err = l.refresh(placeOf(name), placeTemporary); err == nil {
			err = l.put(ctx, name, data, in)
		}
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

func (l *Location) put(ctx context.Context, name blob.Name, data []byte, in install) error {
	t, err := l.openTree(true)
	if err != nil {
		return err
	}
	// The blob's own folder first: without it there is no use in writing.
	place := placeOf(name)
	to, done, err := t.folder(place, true)
	if err != nil {
		return err
	}
	defer done()
	temporary, done, err := t.folder(placeTemporary, true)
	if err != nil {
		return err
	}
	defer done()

	temporaryName := l.temporaryName()
	if err = write(ctx, temporary, temporaryName, data); err == nil {
		err = in(temporary, temporaryName, to, fileName(name))
	}
	if err != nil {
		// What can't be removed now, gc removes later.
		_ = temporary.remove(temporaryName)
		return err
	}
	l.flush.mark(t, place)
	return nil
}

// temporaryName returns a name that no other writer uses.
func (l *Location) temporaryName() string {
	var name [16]byte
	copy(name[:], l.temporary[:])
	n := l.sequence.Add(1)
	for i := range 8 {
		name[15-i] = byte(n >> (8 * i))
	}
	return hex.EncodeToString(name[:])
}

// write makes a file with that content, synced.
func write(ctx context.Context, in folder, name string, data []byte) error {
	created, err := in.create(name)
	if err != nil {
		return err
	}
	if err = writeAll(ctx, created, data); err == nil {
		err = created.Sync()
	}
	if closeErr := created.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = ctx.Err()
	}
	return withoutPath(err)
}

func writeAll(ctx context.Context, w io.Writer, data []byte) error {
	for len(data) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := w.Write(data[:min(len(data), piece)])
		switch {
		case err != nil:
			return err
		case n <= 0:
			return io.ErrShortWrite
		}
		data = data[n:]
	}
	return nil
}

// Get reads a blob; see blob.Location.
func (l *Location) Get(ctx context.Context, name blob.Name, buf []byte, limit int64) (data []byte, err error) {
	err = l.find(ctx, "reading", name, func(_ *tree, in folder) error {
		data, err = in.read(fileName(name), buf, limit)
		return err
	})
	if err != nil {
		return nil, err
	}
	return data, nil
}

// readAll reads the size bytes that a file has into buf's memory when that is
// enough.
func readAll(r io.Reader, buf []byte, size int64) ([]byte, error) {
	if int64(cap(buf)) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	for at := 0; at < len(buf); {
		n, err := r.Read(buf[at:])
		if n <= 0 && (err == nil || errors.Is(err, io.EOF)) {
			return nil, errors.New("it was cut short while it was read")
		}
		if n <= 0 {
			return nil, withoutPath(err)
		}
		at += n
	}
	return buf, nil
}

// Stat describes a blob; see blob.Location. The next Flush covers a blob that it
// found, whoever wrote it: a writer may rely on that blob instead of writing it
// again.
func (l *Location) Stat(ctx context.Context, name blob.Name) (info blob.Info, err error) {
	err = l.find(ctx, "looking up", name, func(t *tree, in folder) error {
		found, err := in.stat(fileName(name))
		switch {
		case err != nil:
			return err
		case !found.regular:
			return errNotRegular
		}
		info = blob.Info{Name: name, Size: found.size, Mark: found.mark()}
		l.flush.mark(t, placeOf(name))
		return nil
	})
	return info, err
}

// mark returns the version mark of a file: its size, time of writing and inode.
func (s status) mark() string {
	mark := make([]byte, 0, 48)
	mark = strconv.AppendInt(mark, s.size, 10)
	mark = append(mark, '-')
	mark = strconv.AppendInt(mark, s.modified.UnixNano(), 36)
	mark = append(mark, '-')
	return string(strconv.AppendUint(mark, s.inode, 36))
}

// Delete removes a blob; see blob.Location.
func (l *Location) Delete(ctx context.Context, name blob.Name) error {
	err := l.find(ctx, "deleting", name, func(t *tree, in folder) error {
		// Marked even if the file is absent: whoever removed it may not have
		// flushed.
		defer l.flush.mark(t, placeOf(name))
		return in.remove(fileName(name))
	})
	if errors.Is(err, blob.ErrNotFound) {
		return nil
	}
	return err
}

// find runs step on a blob's folder. An absent file, folder or directory is
// ErrNotFound, but only if the folder that says so is still in its place.
func (l *Location) find(ctx context.Context, doing string, name blob.Name, step func(*tree, folder) error) error {
	if err := blob.CheckCall(ctx, name); err != nil {
		return err
	}
	for range tries {
		t, err := l.openTree(false)
		if errors.Is(err, errAbsent) {
			return blob.ErrNotFound
		}
		if err != nil {
			return err
		}
		current := true
		if err = inFolder(t, placeOf(name), step); errors.Is(err, fs.ErrNotExist) {
			if current, err = l.isCurrent(t, placeOf(name)); err == nil && current {
				return blob.ErrNotFound
			}
		}
		switch {
		case !current && err == nil:
			l.drop(t)
		case err == nil || errors.Is(err, blob.ErrTooLarge):
			return err
		default:
			return fmt.Errorf("%s %s: %w", doing, name, err)
		}
	}
	return fmt.Errorf("%s %s: %w", doing, name, errReplaced)
}

func inFolder(t *tree, p place, step func(*tree, folder) error) error {
	in, done, err := t.folder(p, false)
	if err != nil {
		return err
	}
	defer done()
	return step(t, in)
}
