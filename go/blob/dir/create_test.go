package dir

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// unlinked is a folder on a file system that can neither rename to a free name nor link.
type unlinked struct {
	folder
	err error
}

func (u unlinked) open(name string) (folder, error) {
	inner, err := u.folder.open(name)
	if err != nil {
		return nil, err
	}
	return unlinked{inner, u.err}, nil
}

func (u unlinked) rename(name string, to folder, newName string) error {
	return u.folder.rename(name, to.(unlinked).folder, newName)
}

func (u unlinked) renameNew(string, folder, string) error { return u.err }

func TestCreateWithoutHardLinks(t *testing.T) {
	for _, reason := range []error{syscall.EPERM, errors.ErrUnsupported} {
		open := func(path string) (folder, error) {
			inner, err := openRoot(path)
			if err != nil {
				return nil, err
			}
			return unlinked{inner, reason}, nil
		}
		l, err := newLocation(filepath.Join(t.TempDir(), "location"), open, folderLimit())
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []blob.Name{blob.Header(), blobtest.Name(blob.KindChunk, 1)} {
			if err := l.Create(t.Context(), name, []byte("first")); err != nil {
				t.Fatal(err)
			}
			if err := l.Create(t.Context(), name, []byte("second")); !errors.Is(err, blob.ErrExists) {
				t.Errorf("Create where there is one: %v", err)
			}
			if got, err := l.Get(t.Context(), name, nil, 100); err != nil || string(got) != "first" {
				t.Errorf("Get returns %q, %v", got, err)
			}
		}
		if err := l.ListTemporary(t.Context(), func(left blob.Temporary) error { return errors.New(left.Name) }); err != nil {
			t.Errorf("a temporary file is left: %v", err)
		}
	}
}
