package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// mount mounts something for the test's time, or skips the test where that isn't
// allowed.
func mount(t *testing.T, source, target, kind string, flags uintptr, options string) {
	t.Helper()
	if err := unix.Mount(source, target, kind, flags, options); err != nil {
		t.Skip("mounting is not allowed here:", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(target, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

func TestFullDisk(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		disk := t.TempDir()
		mount(t, "tmpfs", disk, "tmpfs", 0, "size=4m,mode=700")
		root := filepath.Join(disk, "pc")
		l, name := open(root), blobtest.Name(blob.KindChunk, 1)
		put(t, l, name, "earlier")
		for range 3 {
			err := l.Put(t.Context(), name, make([]byte, 5<<20))
			if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), "no space left on device") {
				t.Errorf("Put on a full disk: %v", err)
			}
			expect(t, l, name, "earlier")
			if got := files(t, root); len(got) != 1 {
				t.Errorf("the directory holds %v", got)
			}
		}
		put(t, l, name, strings.Repeat("later", 1000))
		flush(t, l)
	})
}

func TestReadOnlyDisk(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(t.TempDir(), "pc")
		name := blobtest.Name(blob.KindChunk, 1)
		put(t, open(root), name, "earlier")
		mount(t, root, root, "", unix.MS_BIND, "")
		if err := unix.Mount("", root, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		l := open(root)
		for _, name := range []blob.Name{name, blobtest.Name(blob.KindRecord, 1), blob.Header()} {
			if err := l.Put(t.Context(), name, []byte("new")); !errors.Is(err, unix.EROFS) {
				t.Errorf("Put(%s): %v, want a read-only file system", name, err)
			}
		}
		if err := l.Delete(t.Context(), name); !errors.Is(err, unix.EROFS) {
			t.Errorf("Delete: %v, want a read-only file system", err)
		}
		expect(t, l, name, "earlier")
		if err := l.Probe(t.Context()); err != nil {
			t.Errorf("Probe: %v", err)
		}
	})
}

// TestSpecialFiles puts what isn't a regular file in a blob's place. Opening a
// FIFO must not wait for a writer.
func TestSpecialFiles(t *testing.T) {
	for special, make := range map[string]func(path string) error{
		"FIFO":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"device": device,
		"socket": func(path string) error { return unix.Mknod(path, unix.S_IFSOCK|0o600, 0) },
		"link":   func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		both(t, func(t *testing.T, open func(string) *Location) {
			root := filepath.Join(t.TempDir(), "pc")
			l, name := open(root), blobtest.Name(blob.KindChunk, 1)
			put(t, l, name, "data")
			for _, path := range []string{filePath(root, name), filepath.Join(root, "tmp", strings.Repeat("a", 32))} {
				if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
				if err := make(path); err != nil {
					t.Fatalf("no %s can be made: %v", special, err)
				}
			}
			if _, err := l.Get(t.Context(), name, nil, limit); !errors.Is(err, errNotRegular) {
				t.Errorf("Get of a %s: %v", special, err)
			}
			if _, err := l.Stat(t.Context(), name); !errors.Is(err, errNotRegular) {
				t.Errorf("Stat of a %s: %v", special, err)
			}
			err := errors.Join(l.List(t.Context(), blob.KindChunk, func(blob.Info) error { return errors.New("listed") }),
				l.ListTemporary(t.Context(), func(blob.Temporary) error { return errors.New("listed") }))
			if err != nil {
				t.Errorf("List with a %s: %v", special, err)
			}
			put(t, l, name, "repaired")
			expect(t, l, name, "repaired")
		})
	}
}

// device makes a device that never ends or, without the right to make that one,
// the device with the number 0, which anybody may make.
func device(path string) error {
	err := unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 5)))
	if errors.Is(err, unix.EPERM) {
		err = unix.Mknod(path, unix.S_IFCHR|0o600, 0)
	}
	return err
}
