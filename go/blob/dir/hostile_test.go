package dir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

func TestUnusableRoots(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		at := t.TempDir()
		if err := os.WriteFile(filepath.Join(at, "file"), []byte("kept"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(at, "unmounted"), filepath.Join(at, "dangling")); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]string{
			"file":        "it is a file, not a directory",
			"absent/pc":   "its parent directory " + filepath.Join(at, "absent") + " does not exist",
			"file/pc":     "not a directory",
			"dangling":    "symbolic link to a directory that does not exist",
			"dangling/pc": "its parent directory",
		} {
			l, name := open(filepath.Join(at, "/")+"/"+path), blobtest.Name(blob.KindChunk, 1)
			_, getErr := l.Get(t.Context(), name, nil, limit)
			_, statErr := l.Stat(t.Context(), name)
			for what, err := range map[string]error{
				"Probe": l.Probe(t.Context()), "Get": getErr, "Stat": statErr, "Delete": l.Delete(t.Context(), name),
				"List":          l.List(t.Context(), blob.KindChunk, func(blob.Info) error { return nil }),
				"ListTemporary": l.ListTemporary(t.Context(), func(blob.Temporary) error { return nil }),
				"Put":           l.Put(t.Context(), name, []byte("x")),
			} {
				if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s in %s: %v, want %q", what, path, err, want)
				}
			}
		}
		if got := files(t, at); !strings.Contains(strings.Join(got, " "), "dangling file") {
			t.Errorf("the directory holds %v", got)
		}
	})
}

func TestRootThroughSymlink(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		at := t.TempDir()
		if err := errors.Join(os.Mkdir(filepath.Join(at, "disk"), 0o700), os.Symlink("disk", filepath.Join(at, "pc"))); err != nil {
			t.Fatal(err)
		}
		l := open(filepath.Join(at, "pc"))
		put(t, l, blob.Header(), "h")
		flush(t, l)
		if got := files(t, filepath.Join(at, "disk")); len(got) != 1 || got[0] != "header" {
			t.Errorf("the disk holds %v", got)
		}
	})
}

// TestHostileSymlinks plants links to a folder outside wherever a folder or file
// of the location belongs.
func TestHostileSymlinks(t *testing.T) {
	name := blobtest.Name(blob.KindChunk, 1)
	id := strings.TrimPrefix(name.String(), "chunk/")
	for _, planted := range []string{"chunk", "chunk/" + id[:2], "tmp", "chunk/" + id[:2] + "/" + id} {
		both(t, func(t *testing.T, open func(string) *Location) {
			at := t.TempDir()
			outside, root := filepath.Join(at, "outside"), filepath.Join(at, "pc")
			target := outside
			if strings.HasSuffix(planted, id) {
				target = filepath.Join(outside, id)
			}
			err := errors.Join(os.MkdirAll(filepath.Join(outside, id[:2]), 0o700),
				os.WriteFile(filepath.Join(outside, id), []byte("secret"), 0o600),
				os.WriteFile(filepath.Join(outside, id[:2], id), []byte("secret"), 0o600),
				os.WriteFile(filepath.Join(outside, strings.Repeat("0", 32)), []byte("secret"), 0o600),
				os.MkdirAll(filepath.Dir(filepath.Join(root, planted)), 0o700),
				os.Symlink(target, filepath.Join(root, planted)))
			if err != nil {
				t.Fatal(err)
			}
			before := files(t, outside)
			l := open(root)
			if planted != "tmp" {
				if got, err := l.Get(t.Context(), name, nil, limit); err == nil || errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Get through %s: %q, %v", planted, got, err)
				}
				if info, err := l.Stat(t.Context(), name); err == nil || errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Stat through %s: %v, %v", planted, info, err)
				}
			}
			_ = l.List(t.Context(), blob.KindChunk, func(info blob.Info) error {
				t.Errorf("%s is listed through %s", info.Name, planted)
				return nil
			})
			_ = l.ListTemporary(t.Context(), func(left blob.Temporary) error {
				t.Errorf("%s is listed through %s", left.Name, planted)
				return nil
			})
			_ = l.RemoveTemporary(t.Context(), strings.Repeat("0", 32))
			err = l.Put(t.Context(), name, []byte("data"))
			if link := strings.HasSuffix(planted, id); (err == nil) != link {
				t.Errorf("Put through %s: %v", planted, err)
			} else if link {
				expect(t, l, name, "data")
			} else if !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("Put through %s doesn't say why it fails: %v", planted, err)
			}
			_ = l.Delete(t.Context(), name)
			if got := files(t, outside); strings.Join(got, " ") != strings.Join(before, " ") {
				t.Errorf("through %s, the folder outside became %v", planted, got)
			}
			if got, _ := os.ReadFile(filepath.Join(outside, id)); string(got) != "secret" {
				t.Errorf("through %s, a file outside became %q", planted, got)
			}
		})
	}
}

func TestForeignFiles(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l := open(root)
		name := blobtest.Name(blob.KindChunk, 1)
		put(t, l, name, "data")
		shard := filepath.Dir(filePath(root, name))
		id := filepath.Base(filePath(root, name))
		elsewhere := filepath.Join(root, "chunk", map[bool]string{true: "00", false: "01"}[id[:2] != "00"])
		err := os.MkdirAll(elsewhere, 0o700)
		for _, path := range []string{
			filepath.Join(root, "header.bak"), filepath.Join(root, "lost+found"), filepath.Join(root, "chunk", id),
			filepath.Join(shard, strings.ToUpper(id)), filepath.Join(shard, id+".part"), filepath.Join(shard, ".nfs0001"),
			filepath.Join(elsewhere, id), filepath.Join(root, "tmp", "notes.txt"),
		} {
			err = errors.Join(err, os.WriteFile(path, nil, 0o600))
		}
		for i := range 3 * batch {
			err = errors.Join(err, os.WriteFile(filepath.Join(shard, fmt.Sprint("foreign", i)), nil, 0o600))
		}
		err = errors.Join(err, os.MkdirAll(filepath.Join(shard, id[:2]+strings.Repeat("f", 62)), 0o700),
			os.MkdirAll(filepath.Join(root, "tmp", strings.Repeat("a", 32)), 0o700))
		if err != nil {
			t.Fatal(err)
		}
		var listed []blob.Name
		err = l.List(t.Context(), blob.KindChunk, func(info blob.Info) error {
			listed = append(listed, info.Name)
			return nil
		})
		if err != nil || len(listed) != 1 || listed[0] != name {
			t.Errorf("List: %v, %v", listed, err)
		}
		err = l.ListTemporary(t.Context(), func(left blob.Temporary) error {
			return fmt.Errorf("%s is listed", left.Name)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestFolderInPlaceOfBlob(t *testing.T) {
	both(t, func(t *testing.T, open func(string) *Location) {
		root := filepath.Join(memoryDir(t), "pc")
		l := open(root)
		for _, kind := range blob.Kinds() {
			name := blobtest.Name(kind, 1)
			if err := os.MkdirAll(filePath(root, name), 0o700); err != nil {
				t.Fatal(err)
			}
			_, getErr := l.Get(t.Context(), name, nil, limit)
			_, statErr := l.Stat(t.Context(), name)
			for what, err := range map[string]error{
				"Get": getErr, "Stat": statErr, "Put": l.Put(t.Context(), name, nil), "Delete": l.Delete(t.Context(), name),
			} {
				if err == nil || errors.Is(err, blob.ErrNotFound) || !strings.Contains(err.Error(), name.String()) {
					t.Errorf("%s: %v", what, err)
				}
			}
			if err := l.List(t.Context(), kind, func(info blob.Info) error { return errors.New("listed") }); err != nil {
				t.Errorf("List(%s): %v", kind, err)
			}
		}
		if left := files(t, root); len(left) != 0 {
			t.Errorf("the directory holds %v", left)
		}
	})
}
