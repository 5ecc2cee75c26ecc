package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/atomicfile"
)

// Folder is a place on a machine without a disk of the node's own. It can't be locked:
// who can read the folder has the state.
type Folder struct {
	// Path is the folder's. It is made when it is needed.
	Path string
	// Parts are the names of what a node keeps in there. Whatever else the folder has is
	// somebody else's, and stays.
	Parts []string
	// Used reports whether a node's identity is in the folder.
	Used func(folder string) (bool, error)
}

var _ Place = Folder{}

const (
	// erasedName is the folder that has what is being erased. Nothing in it counts.
	erasedName = "powercloud-erased"
	// lostName is what a file system has at its root.
	lostName = "lost+found"
)

// Encrypts reports that nothing is encrypted.
func (Folder) Encrypts() bool { return false }

// Look returns whether the folder has an identity. It finishes an Erase that was cut
// off. A folder that has none, and something that isn't a node's, is refused: somebody
// has named the wrong one.
func (f Folder) Look() (Found, error) {
	if err := f.finish(); err != nil {
		return Found{}, fmt.Errorf("erase the node's state: %w", err)
	}
	used, err := f.Used(f.Path)
	switch {
	case err != nil:
		return Found{}, err
	case used:
		return Found{Condition: Open, Folder: f.Path}, nil
	}
	if err := f.vacant(); err != nil {
		return Found{}, err
	}
	return Found{Condition: Blank}, nil
}

// vacant returns an error if the folder has what isn't a node's.
func (f Folder) vacant() error {
	entries, err := os.ReadDir(f.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lostName && !slices.Contains(f.Parts, name) {
			return fmt.Errorf("the folder %s has %q, which isn't a node's: give the node's state a folder of its own", f.Path, name)
		}
	}
	return nil
}

// Create makes the folder. The key has nothing to unlock.
func (f Folder) Create(_ context.Context, _ header.Owner, _ *header.Key, populate func(folder string) error) (string, error) {
	if err := os.MkdirAll(f.Path, 0o700); err != nil {
		return "", err
	}
	return f.Path, populate(f.Path)
}

// Unlock fails: a folder isn't locked.
func (Folder) Unlock(*header.Key) (string, header.Owner, error) {
	return "", header.Owner{}, errors.New("the node's state is in a folder, which isn't locked")
}

// Erase removes what is the node's. The folder itself stays: a file system can be mounted
// there, and somebody else may have put something into it. Cut off, it leaves each part
// whole or gone.
func (f Folder) Erase() error {
	if err := f.erase(); err != nil {
		return fmt.Errorf("erase the node's state: %w", err)
	}
	return nil
}

func (f Folder) erase() error {
	if err := f.finish(); err != nil {
		return err
	}
	erased := filepath.Join(f.Path, erasedName)
	switch err := os.Mkdir(erased, 0o700); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	}
	for _, name := range f.Parts {
		err := os.Rename(filepath.Join(f.Path, name), filepath.Join(erased, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := atomicfile.SyncDirectory(f.Path); err != nil {
		return err
	}
	return f.finish()
}

// finish removes what is being erased.
func (f Folder) finish() error { return os.RemoveAll(filepath.Join(f.Path, erasedName)) }

// Grow does nothing.
func (Folder) Grow(context.Context) error { return nil }

// Space says that the state isn't encrypted.
func (Folder) Space() (Space, error) { return Space{}, nil }
