package state

import (
	"context"
	"errors"
	"fmt"
	"os"

	"powercloud.unidatum.com/go/node/volume/header"
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

// Look returns whether the folder has an identity.
func (f Folder) Look() (Found, error) {
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

// Erase removes the folder.
func (f Folder) Erase() error {
	if err := os.RemoveAll(f.Path); err != nil {
		return fmt.Errorf("erase the node's state: %w", err)
	}
	return nil
}

// Grow does nothing.
func (Folder) Grow(context.Context) error { return nil }

// Space says that the state isn't encrypted.
func (Folder) Space() (Space, error) { return Space{}, nil }
