package dir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// errAbsent says that the directory doesn't exist and could be made: the location
// is empty.
var errAbsent = errors.New("the directory does not exist yet")

// openTree returns the location's folders. Without create, a directory that
// doesn't exist yet is errAbsent.
func (l *Location) openTree(create bool) (*tree, error) {
	if t := l.tree.Load(); t != nil {
		return t, nil
	}
	root, err := l.openRoot(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.checkParent(); err == nil {
			if !create {
				return nil, errAbsent
			}
			root, err = l.makeRoot()
		}
	} else if err != nil {
		err = l.explain(err)
	}
	if err != nil {
		return nil, err
	}
	t := newTree(root, l.limit)
	if !l.tree.CompareAndSwap(nil, t) {
		root.close()
		return l.openTree(create)
	}
	return t, nil
}

func (l *Location) makeRoot() (folder, error) {
	switch err := os.Mkdir(l.path, 0o700); {
	case err == nil:
		l.made.Store(true)
	case !errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("making the directory: %w", withoutPath(err))
	}
	root, err := l.openRoot(l.path)
	if err != nil {
		return nil, l.explain(err)
	}
	return root, nil
}

// checkParent returns nil if the directory is missing and may be made.
func (l *Location) checkParent() error {
	if info, err := os.Lstat(l.path); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return errors.New("it is a symbolic link to a directory that does not exist; is its disk mounted?")
	}
	parent := filepath.Dir(l.path)
	info, err := os.Stat(parent)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("its parent directory %s does not exist; is its disk mounted?", parent)
	case err != nil:
		return fmt.Errorf("looking for its parent directory %s: %w", parent, withoutPath(err))
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", parent)
	}
	return nil
}

// explain says what is wrong with a directory that can't be opened.
func (l *Location) explain(err error) error {
	if info, statErr := os.Stat(l.path); statErr == nil && !info.IsDir() {
		return errors.New("it is a file, not a directory")
	}
	return fmt.Errorf("opening the directory: %w", err)
}

// isCurrent reports whether a tree's folder is where it was: neither the folder
// nor the location's directory was removed or replaced since it was opened.
func (l *Location) isCurrent(t *tree, p place) (bool, error) {
	for ; p > placeRoot; p = p.parent() {
		if kept := t.folders[p].Load(); kept != nil {
			if (*kept).removed() {
				return false, nil
			}
			break // and so are those above, since they aren't empty
		}
	}
	return t.root().isAt(l.path)
}

// currentTree is openTree for what must not miss that this folder, or the
// directory, was replaced.
func (l *Location) currentTree(p place) (*tree, error) {
	if err := l.refresh(p); err != nil {
		return nil, err
	}
	return l.openTree(false)
}

// refresh drops the tree unless these of its folders are where they were.
func (l *Location) refresh(places ...place) error {
	t := l.tree.Load()
	if t == nil {
		return nil
	}
	for _, p := range places {
		switch current, err := l.isCurrent(t, p); {
		case err != nil:
			return l.explain(err)
		case !current:
			l.drop(t)
			return nil
		}
	}
	return nil
}

// drop drops a tree whose folders were removed or replaced. What it had not
// flushed can't be any more.
func (l *Location) drop(t *tree) {
	l.flush.abandon(t)
	l.tree.CompareAndSwap(t, nil)
}
