package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"powercloud.unidatum.com/go/blob"
)

// List lists the blobs of a kind; see blob.Location. Something other than a
// regular file is not a blob, whatever it is called.
func (l *Location) List(ctx context.Context, kind blob.Kind, fn func(blob.Info) error) error {
	if kind == blob.KindHeader {
		info, err := l.Stat(ctx, blob.Header())
		switch {
		case errors.Is(err, blob.ErrNotFound), errors.Is(err, errNotRegular):
			return nil
		case err != nil:
			return err
		}
		return fn(info)
	}
	for first := range fanOut {
		if err := l.ListSection(ctx, kind, byte(first), fn); err != nil {
			return err
		}
	}
	return nil
}

// ListSection lists the blobs of a kind whose IDs begin with a byte; see
// blob.Sections. The folders that there can be are tried, not listed: their parent
// may hold any number of others.
func (l *Location) ListSection(ctx context.Context, kind blob.Kind, first byte, fn func(blob.Info) error) error {
	t, p, err := l.section(ctx, kind, first)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.listFolder(ctx, t, p, func(text string, found status) error {
		id, ok := blob.ParseID(text)
		if !ok || id[0] != first {
			return nil
		}
		return fn(blob.Info{Name: blob.Name{Kind: kind, ID: id}, Size: found.size, Mark: found.mark()})
	}, isBlobFile)
}

// SectionMark returns a mark of a section's folder; see blob.Sections. A blob that
// is put or deleted changes the folder's times, which a blob that somebody else
// writes into in its place doesn't.
func (l *Location) SectionMark(ctx context.Context, kind blob.Kind, first byte) (string, error) {
	t, p, err := l.section(ctx, kind, first)
	if errors.Is(err, errAbsent) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var mark string
	err = inFolder(t, p, func(_ *tree, in folder) (err error) {
		mark, err = in.mark(time.Now())
		return err
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking at %s: %w", p, err)
	}
	return mark, nil
}

// section returns the folders as they are now and the place of a section among
// them, or errAbsent.
func (l *Location) section(ctx context.Context, kind blob.Kind, first byte) (*tree, place, error) {
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind, ID: [32]byte{first}}); err != nil {
		return nil, 0, err
	}
	if kind == blob.KindHeader {
		return nil, 0, errors.New("the header has no sections")
	}
	p := fanPlace(kind, first)
	t, err := l.currentTree(p)
	return t, p, err
}

func isBlobFile(text string) bool {
	_, ok := blob.ParseID(text)
	return ok
}

// errStop carries an error of the caller's function out of a listing unchanged.
type errStop struct{ err error }

func (e errStop) Error() string { return e.err.Error() }

// listFolder calls fn for the regular files in a folder whose names are wanted.
// A folder that doesn't exist is empty.
func (l *Location) listFolder(ctx context.Context, t *tree, p place, fn func(string, status) error, wanted func(string) bool) error {
	err := inFolder(t, p, func(_ *tree, in folder) error {
		return in.names(func(names []string) error {
			if err := ctx.Err(); err != nil {
				return errStop{err}
			}
			names = slices.DeleteFunc(names, func(name string) bool { return !wanted(name) })
			for i, entry := range statAll(in, names) {
				switch {
				case errors.Is(entry.err, fs.ErrNotExist): // removed meanwhile
					continue
				case entry.err != nil:
					return fmt.Errorf("%s: %w", names[i], entry.err)
				case !entry.regular:
					continue
				}
				if err := fn(names[i], entry.status); err != nil {
					return errStop{err}
				}
			}
			return nil
		})
	})
	var stop errStop
	switch {
	case errors.As(err, &stop):
		return stop.err
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return nil
	}
	return fmt.Errorf("listing %s: %w", p, err)
}

// entry is what a folder knows about a file, or why it can't tell.
type entry struct {
	status
	err error
}

// statAll asks a folder about files. Each answer may have to wait for the disk,
// and takes longer than all else in a listing: several are asked for at once.
func statAll(in folder, names []string) []entry {
	const atOnce, share = 8, 64
	entries := make([]entry, len(names))
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(atOnce, (len(names)+share-1)/share) {
		group.Go(func() {
			for {
				start := int(next.Add(share)) - share
				if start >= len(names) {
					return
				}
				for i := start; i < min(start+share, len(names)); i++ {
					entries[i].status, entries[i].err = in.stat(names[i])
				}
			}
		})
	}
	group.Wait()
	return entries
}

// ListTemporary lists what writes left behind, and those in progress; see
// blob.Temporaries. Files with other names than Put's are not its business.
func (l *Location) ListTemporary(ctx context.Context, fn func(blob.Temporary) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := l.currentTree(placeTemporary)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	return l.listFolder(ctx, t, placeTemporary, func(name string, found status) error {
		return fn(blob.Temporary{Name: name, Size: found.size, Mark: found.mark()})
	}, isTemporary)
}

// RemoveTemporary removes one; see blob.Temporaries.
func (l *Location) RemoveTemporary(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !isTemporary(name) {
		return fmt.Errorf("%.100q is not a temporary file's name", name)
	}
	t, err := l.currentTree(placeTemporary)
	if errors.Is(err, errAbsent) {
		return nil
	}
	if err != nil {
		return err
	}
	err = inFolder(t, placeTemporary, func(_ *tree, in folder) error { return in.remove(name) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing the temporary file %s: %w", name, err)
	}
	return nil
}

// isTemporary reports whether a file's name is one of Put's temporary files.
func isTemporary(name string) bool {
	const digits = 32
	if len(name) != digits {
		return false
	}
	for i := range len(name) {
		if c := name[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
