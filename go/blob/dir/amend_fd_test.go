//go:build linux || darwin

package dir

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestAmendAtOnce has several change one blob through Locations of their own, as several
// processes do.
func TestAmendAtOnce(t *testing.T) {
	root := filepath.Join(memoryDir(t), "pc")
	for range 20 {
		var locations []blob.Location
		for range 3 {
			l, err := New(root)
			if err != nil {
				t.Fatal(err)
			}
			locations = append(locations, l)
		}
		blobtest.AmendAtOnce(t, locations...)
		if err := locations[0].Delete(t.Context(), blobtest.Name(blob.KindManifest, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAmendMeanwhile(t *testing.T) {
	root := filepath.Join(memoryDir(t), "pc")
	for _, open := range []func(string) (folder, error){openRoot, openRootFolder} {
		l, err := newLocation(root, open, placeCount)
		if err != nil {
			t.Fatal(err)
		}
		other, err := New(root)
		if err != nil {
			t.Fatal(err)
		}
		blobtest.AmendMeanwhile(t, l, other)
	}
}

// TestAmendWhereAnotherHoldsTheLock: whoever can write to a location can't hold up
// others for ever.
func TestAmendWhereAnotherHoldsTheLock(t *testing.T) {
	root := filepath.Join(memoryDir(t), "pc")
	l, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	name := blobtest.Name(blob.KindManifest, 1)
	put(t, l, name, "former")
	fd, err := unix.Open(filepath.Join(root, "manifest", fileName(name)[:2]), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	err = l.Amend(t.Context(), name, limit, func(data []byte, err error) ([]byte, error) { return append(data, '!'), err })
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Get(t.Context(), name, nil, limit); err != nil || string(got) != "former!" {
		t.Errorf("Get = %q, %v", got, err)
	}
}
