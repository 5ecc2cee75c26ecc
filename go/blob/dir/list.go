package dir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

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
	if err := blob.CheckCall(ctx, blob.Name{Kind: kind}); err != nil {
		return err
	}
	// The folders that there can be are tried, not listed: their parent may hold
	// any number of others.
	for first := range fanOut {
		p := fanPlace(kind, byte(first))
		t, err := l.currentTree(p)
		if errors.Is(err, errAbsent) {
			return nil
		}
		if err != nil {
			return err
		}
		err = l.listFolder(ctx, t, p, func(text string, found status) error {
			id, ok := blob.ParseID(text)
			if !ok || id[0] != byte(first) {
				return nil
			}
			return fn(blob.Info{Name: blob.Name{Kind: kind, ID: id}, Size: found.size, Mark: found.mark()})
		}, isBlobFile)
		if err != nil {
			return err
		}
	}
	return nil
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
			for _, name := range names {
				if !wanted(name) {
					continue
				}
				found, err := in.stat(name)
				switch {
				case errors.Is(err, fs.ErrNotExist): // removed meanwhile
					continue
				case err != nil:
					return fmt.Errorf("%s: %w", name, err)
				case !found.regular:
					continue
				}
				if err := fn(name, found); err != nil {
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
