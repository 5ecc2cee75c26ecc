package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"powercloud.unidatum.com/go/sys/atomicfile"
)

// ErrExists says that a state folder has an identity already.
var ErrExists = errors.New("node is already enrolled in a cluster")

// Install keeps an identity in a state folder, which must be there, and makes it last.
// Cut short, it leaves the folder without an identity, or with the whole one. If there
// is one already, of whatever state, it stays, and the error wraps ErrExists.
//
// Install and Load are for one process, which alone works in the folder, and are
// called one after the other.
func Install(folder string, i *Identity) (*Kept, error) {
	directory := filepath.Join(folder, directoryName)
	switch _, err := os.Lstat(directory); {
	case err == nil:
		return nil, ErrExists
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("looking for the node's identity: %w", err)
	}
	contents, err := i.files()
	if err != nil {
		return nil, fmt.Errorf("installing the node's identity: %w", err)
	}
	defer contents.wipe()
	pending := filepath.Join(folder, pendingName)
	if err := fill(pending, contents); err != nil {
		return nil, fmt.Errorf("installing the node's identity: %w", errors.Join(err, os.RemoveAll(pending)))
	}
	if err := atomicfile.Rename(pending, directory); err != nil {
		return nil, fmt.Errorf("installing the node's identity: %w", err)
	}
	return newKept(directory, i), nil
}

// fill makes a directory with the files, in the place of what an earlier Install may
// have left there.
func fill(directory string, contents files) error {
	if err := os.RemoveAll(directory); err != nil {
		return err
	}
	if err := os.Mkdir(directory, directoryMode); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		if err := atomicfile.Create(filepath.Join(directory, name), contents[name], fileMode); err != nil {
			return err
		}
	}
	return atomicfile.SyncDirectory(directory)
}

// Load returns the identity that a state folder has, and removes what was cut short
// there. The certificate may have expired, as it can be renewed: see Identity.Check.
// Errors wrap ErrNone or ErrDamaged, or say why something can't be read, which is
// neither.
func Load(folder string) (*Kept, error) {
	directory := filepath.Join(folder, directoryName)
	contents, err := read(directory)
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, err
	}
	defer contents.wipe()
	if cleanErr := clean(folder, err == nil); cleanErr != nil {
		return nil, fmt.Errorf("removing what is left of another identity: %w", cleanErr)
	}
	if err != nil {
		return nil, err
	}
	i, err := contents.parse()
	if err != nil {
		return nil, err
	}
	return newKept(directory, i), nil
}

// clean removes what was cut short in a state folder, and makes what is there last:
// the end of Install may have failed.
func clean(folder string, installed bool) error {
	err := os.RemoveAll(filepath.Join(folder, pendingName))
	if !installed || err != nil {
		return err
	}
	if err := atomicfile.RemoveTemporary(filepath.Join(folder, directoryName)); err != nil {
		return err
	}
	return atomicfile.SyncDirectory(folder)
}
