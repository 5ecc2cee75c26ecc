package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/sys/atomicfile"
)

// Folder is a place on a machine without a disk of the node's own. It can't be locked:
// who can read the folder has the state.
type Folder struct {
	// Path is the folder's. It is made when it is needed.
	Path string
	// Used reports whether a node's identity is in the folder.
	Used func(folder string) (bool, error)
}

var _ Place = Folder{}

// erasedName is the folder that has what is being erased. Nothing in it counts.
const erasedName = "erased"

// Encrypts reports that nothing is encrypted.
func (Folder) Encrypts() bool { return false }

// Look returns whether the folder has an identity. It finishes an Erase that was cut
// off.
func (f Folder) Look() (Found, error) {
	if err := os.RemoveAll(filepath.Join(f.Path, erasedName)); err != nil {
		return Found{}, fmt.Errorf("erase the node's state: %w", err)
	}
	used, err := f.Used(f.Path)
	switch {
	case err != nil:
		return Found{}, err
	case used:
		return Found{Condition: Open, Folder: f.Path}, nil
	}
	return Found{Condition: Blank}, nil
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

// Erase removes all that is in the folder, which itself stays: a file system can be
// mounted there. Cut off, it leaves each part whole or gone.
func (f Folder) Erase() error {
	if err := f.erase(); err != nil {
		return fmt.Errorf("erase the node's state: %w", err)
	}
	return nil
}

func (f Folder) erase() error {
	erased := filepath.Join(f.Path, erasedName)
	if err := os.RemoveAll(erased); err != nil {
		return err
	}
	entries, err := os.ReadDir(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.Mkdir(erased, 0o700); err != nil {
		return err
	}
	for _, entry := range entries {
		if err := os.Rename(filepath.Join(f.Path, entry.Name()), filepath.Join(erased, entry.Name())); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncDirectory(f.Path); err != nil {
		return err
	}
	return os.RemoveAll(erased)
}

// Grow does nothing.
func (Folder) Grow(context.Context) error { return nil }

// Space says that the state isn't encrypted.
func (Folder) Space() (Space, error) { return Space{}, nil }
