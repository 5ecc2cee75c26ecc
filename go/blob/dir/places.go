package dir

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"powercloud.unidatum.com/go/blob"
)

// place numbers the folders of a location.
type place int

const (
	// placeParent is the folder that holds the location's own.
	placeParent place = iota
	placeRoot
	placeTemporary
	// placeKinds is the first of the folders of the kinds of blobs.
	placeKinds
)

const (
	kindCount  = int(blob.KindRecord)
	fanOut     = 256
	placeFans  = placeKinds + place(kindCount)
	placeCount = int(placeFans) + kindCount*fanOut
)

// fanPlace returns the one of a kind's 256 folders whose blobs' IDs begin with
// that byte.
func fanPlace(kind blob.Kind, first byte) place {
	return placeFans + place(int(kind)-1)*fanOut + place(first)
}

// placeOf returns the folder that a blob's file is in.
func placeOf(name blob.Name) place {
	if name.Kind == blob.KindHeader {
		return placeRoot
	}
	return fanPlace(name.Kind, name.ID[0])
}

// fileName returns the name of a blob's file in its folder.
func fileName(name blob.Name) string {
	if name.Kind == blob.KindHeader {
		return "header"
	}
	var digits [2 * blob.IDSize]byte
	hex.Encode(digits[:], name.ID[:])
	return string(digits[:])
}

func (p place) parent() place {
	switch {
	case p <= placeRoot:
		return placeParent
	case p < placeFans:
		return placeRoot
	}
	return placeKinds + (p-placeFans)/fanOut
}

// name returns the folder's name in its parent.
func (p place) name() string {
	switch {
	case p == placeTemporary:
		return "tmp"
	case p < placeFans:
		return blob.Kind(p - placeKinds + 1).String()
	}
	return fmt.Sprintf("%02x", int(p-placeFans)%fanOut)
}

// String returns the folder's path in the location, for errors.
func (p place) String() string {
	switch {
	case p == placeParent:
		return "the parent directory"
	case p == placeRoot:
		return "the directory"
	case p < placeFans:
		return p.name()
	}
	return p.parent().name() + "/" + p.name()
}

// tree is a location's folders as they are on the disk, as far as they have been
// opened. It is thrown away when they turn out to have been removed.
type tree struct {
	folders [placeCount]atomic.Pointer[folder]
	// anchored says that the folder's own entry in its parent, and so on up to
	// the location's parent directory, outlasts a power cut.
	anchored [placeCount]atomic.Bool
	// spare is how many more folders may be kept open.
	spare atomic.Int32
}

func newTree(root folder, limit int) *tree {
	t := &tree{}
	t.folders[placeRoot].Store(&root)
	t.spare.Store(int32(limit))
	return t
}

func (t *tree) root() folder { return *t.folders[placeRoot].Load() }

// folder returns a folder, and a function to call when done with it. It makes
// the folder, and those above it, if create is set.
func (t *tree) folder(p place, create bool) (folder, func(), error) {
	if kept := t.folders[p].Load(); kept != nil {
		return *kept, func() {}, nil
	}
	parent, done, err := t.folder(p.parent(), create)
	if err != nil {
		return nil, nil, err
	}
	defer done()
	opened, err := parent.open(p.name())
	if create && errors.Is(err, fs.ErrNotExist) {
		// Somebody else may make it at the same time, which is as good.
		if err = parent.make(p.name()); err == nil || errors.Is(err, fs.ErrExist) {
			opened, err = parent.open(p.name())
		} else {
			return nil, nil, fmt.Errorf("making the folder %s: %w", p, err)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("opening the folder %s: %w", p, err)
	}
	return t.keep(p, opened)
}

// keep keeps an opened folder for the next time, within limits.
func (t *tree) keep(p place, opened folder) (folder, func(), error) {
	if t.spare.Add(-1) < 0 {
		t.spare.Add(1)
		return opened, opened.close, nil
	}
	if !t.folders[p].CompareAndSwap(nil, &opened) {
		t.spare.Add(1)
		opened.close()
		return *t.folders[p].Load(), func() {}, nil
	}
	return opened, func() {}, nil
}
