package dir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// limit is more than any blob here has, in bytes.
const limit = 8 << 20

func TestConformance(t *testing.T) {
	for _, test := range []struct {
		name  string
		open  func(string) (folder, error)
		limit int
	}{
		{"Native", openRoot, placeCount},
		{"FewHandles", openRoot, 3},
		{"NoHandles", openRoot, 0},
		{"Root", openRootFolder, placeCount},
		{"RootNoHandles", openRootFolder, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			blobtest.Run(t, func(t *testing.T) blob.Location {
				l, err := newLocation(filepath.Join(memoryDir(t), "pc"), test.open, test.limit)
				if err != nil {
					t.Fatal(err)
				}
				return l
			})
		})
	}
}

// memoryDir returns a directory of the test's own, in memory if there is such a
// place: syncing thousands of small files to a disk takes minutes.
func memoryDir(t *testing.T) string {
	at, err := os.MkdirTemp("/dev/shm", "dirtest")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(at); err != nil {
			t.Error(err)
		}
	})
	return at
}

// both runs a test with either kind of folder.
func both(t *testing.T, run func(t *testing.T, open func(path string) *Location)) {
	for name, openRoot := range map[string]func(string) (folder, error){"Native": openRoot, "Root": openRootFolder} {
		t.Run(name, func(t *testing.T) {
			run(t, func(path string) *Location {
				l, err := newLocation(path, openRoot, placeCount)
				if err != nil {
					t.Fatal(err)
				}
				return l
			})
		})
	}
}

func put(t *testing.T, l blob.Location, name blob.Name, data string) {
	t.Helper()
	if err := l.Put(t.Context(), name, []byte(data)); err != nil {
		t.Fatalf("Put: %v", err)
	}
}

func expect(t *testing.T, l blob.Location, name blob.Name, want string) {
	t.Helper()
	if got, err := l.Get(t.Context(), name, nil, limit); err != nil || string(got) != want {
		t.Fatalf("Get(%s) = %.60q, %v; want %.60q", name, got, err, want)
	}
}

func flush(t *testing.T, l blob.Location) {
	t.Helper()
	if err := l.Flush(t.Context()); err != nil {
		t.Fatalf("Flush: %v", err)
	}
}

// files returns the paths of everything in a directory that isn't a folder.
func files(t *testing.T, root string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func filePath(root string, name blob.Name) string {
	if name.Kind == blob.KindHeader {
		return filepath.Join(root, "header")
	}
	kind, id, _ := strings.Cut(name.String(), "/")
	return filepath.Join(root, kind, id[:2], id)
}

func TestLayout(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l := open(root)
		for _, kind := range blob.Kinds() {
			name := blobtest.Name(kind, 1)
			put(t, l, name, kind.String())
			if got, err := os.ReadFile(filePath(root, name)); err != nil || string(got) != kind.String() {
				t.Errorf("%s has %q, %v", filePath(root, name), got, err)
			}
		}
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if want := map[bool]fs.FileMode{true: fs.ModeDir | 0o700, false: 0o600}[entry.IsDir()]; info.Mode() != want {
				t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestTemporaries(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l := open(root)
		put(t, l, blobtest.Name(blob.KindChunk, 1), "data")
		left := strings.Repeat("0a", 16)
		if err := os.WriteFile(filepath.Join(root, "tmp", left), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
		var found []blob.Temporary
		err := l.ListTemporary(t.Context(), func(file blob.Temporary) error {
			found = append(found, file)
			return nil
		})
		if err != nil || len(found) != 1 || found[0].Name != left || found[0].Size != 4 || found[0].Mark == "" {
			t.Fatalf("ListTemporary: %+v, %v", found, err)
		}
		for _, name := range []string{"../header", "", ".", strings.Repeat("/", 32), strings.ToUpper(left)} {
			if err := l.RemoveTemporary(t.Context(), name); err == nil {
				t.Errorf("RemoveTemporary(%q) succeeds", name)
			}
		}
		for range 2 {
			if err := l.RemoveTemporary(t.Context(), left); err != nil {
				t.Errorf("RemoveTemporary: %v", err)
			}
		}
		if got := files(t, filepath.Join(root, "tmp")); len(got) != 0 {
			t.Errorf("tmp holds %v", got)
		}
	})
}

func TestHugeFile(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l, name := open(root), blobtest.Name(blob.KindChunk, 1)
		put(t, l, name, "data")
		if err := os.Truncate(filePath(root, name), 1<<40); err != nil {
			t.Skip("no sparse files:", err)
		}
		if got, err := l.Get(t.Context(), name, nil, limit); !errors.Is(err, blob.ErrTooLarge) || got != nil {
			t.Errorf("Get: %d bytes, %v; want ErrTooLarge", len(got), err)
		}
	})
}

// countdown is a context that is cancelled at the n-th look at it.
type countdown struct {
	context.Context
	left *int
}

func (c countdown) Err() error {
	if *c.left--; *c.left < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancelledInTheMiddle(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l, name := open(root), blobtest.Name(blob.KindChunk, 1)
		put(t, l, name, "earlier")
		data := make([]byte, 3*piece)
		for looks := 0; ; looks++ {
			left := looks
			err := l.Put(countdown{t.Context(), &left}, name, data)
			if err == nil {
				if looks < 4 {
					t.Errorf("a write of 3 pieces looked only %d times", looks)
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			expect(t, l, name, "earlier")
			if got := files(t, root); len(got) != 1 {
				t.Fatalf("after %d looks, the directory holds %v", looks, got)
			}
		}
		expect(t, l, name, string(data))
	})
}

func TestRemovedWhileInUse(t *testing.T) {
	name, other := blobtest.Name(blob.KindChunk, 1), blobtest.Name(blob.KindManifest, 2)
	for _, removed := range []string{"", "chunk", "chunk/" + name.String()[6:8], "tmp"} {
		both(t, func(t *testing.T, open func(string) *Location) {
			root := filepath.Join(memoryDir(t), "pc")
			l := open(root)
			put(t, l, name, "data")
			flush(t, l)
			if err := os.RemoveAll(filepath.Join(root, removed)); err != nil {
				t.Fatal(err)
			}
			if removed != "tmp" {
				if _, err := l.Get(t.Context(), name, nil, limit); !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Get: %v", err)
				}
				if _, err := l.Stat(t.Context(), name); !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Stat: %v", err)
				}
			}
			if err := l.Delete(t.Context(), name); err != nil {
				t.Errorf("Delete: %v", err)
			}
			// Somebody puts it back, without this process.
			put(t, open(root), name, "restored")
			expect(t, l, name, "restored")
			if err := os.RemoveAll(filepath.Join(root, removed)); err != nil {
				t.Fatal(err)
			}
			put(t, l, name, "again")
			put(t, l, other, "other")
			expect(t, open(root), name, "again")
			listed := 0
			if err := l.List(t.Context(), blob.KindChunk, func(blob.Info) error { listed++; return nil }); err != nil || listed != 1 {
				t.Errorf("List: %d, %v", listed, err)
			}
		})
	}
}

func TestReplacedBeforeFlush(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l := open(root)
		put(t, l, blobtest.Name(blob.KindChunk, 1), "data")
		if err := errors.Join(os.Rename(root, root+".old"), os.Mkdir(root, 0o700)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Flush(t.Context()); !errors.Is(err, errReplaced) {
				t.Errorf("Flush: %v, want it to say that the directory was replaced", err)
			}
		}
		if _, err := l.Get(t.Context(), blobtest.Name(blob.KindChunk, 1), nil, limit); !errors.Is(err, blob.ErrNotFound) {
			t.Errorf("Get from the new directory: %v", err)
		}
	})
}

const envWriter = "POWERCLOUD_TEST_DIR_WRITER"

// TestTwoProcesses has two processes write one blob at once, while this one
// reads it.
func TestTwoProcesses(t *testing.T) {
	const rounds, size = 100, 50_000
	name := blobtest.Name(blob.KindManifest, 1)
	if text := os.Getenv(envWriter); text != "" {
		letter, root := text[:1], text[1:]
		l, err := New(root)
		if err != nil {
			t.Fatal(err)
		}
		for range rounds {
			put(t, l, name, strings.Repeat(letter, size))
		}
		flush(t, l)
		return
	}
	root := filepath.Join(memoryDir(t), "pc")
	done := make(chan error, 2)
	for _, letter := range []string{"a", "b"} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTwoProcesses$")
		cmd.Env = append(os.Environ(), envWriter+"="+letter+root)
		go func() {
			out, err := cmd.CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, out)
			}
			done <- err
		}()
	}
	l, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	for running := 2; running > 0; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			running--
		default:
		}
		got, err := l.Get(t.Context(), name, nil, limit)
		if errors.Is(err, blob.ErrNotFound) {
			continue
		}
		if err != nil || len(got) != size || !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
			t.Fatalf("Get: %d bytes of a mixture, %v", len(got), err)
		}
	}
	if got := files(t, root); len(got) != 1 {
		t.Errorf("the directory holds %v", got)
	}
}
