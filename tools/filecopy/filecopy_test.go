package filecopy

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCopy(t *testing.T) {
	folder := t.TempDir()
	source, link := filepath.Join(folder, "source"), filepath.Join(folder, "link")
	if err := errors.Join(os.WriteFile(source, []byte("content"), 0o500), os.Symlink("source", link)); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ more, want fs.FileMode }{
		"the same": {0, 0o500}, "writable": {0o200, 0o700},
	} {
		target := filepath.Join(folder, name)
		if err := Copy(target, link, c.more); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(target)
		if err != nil || info.Mode() != c.want {
			t.Errorf("%s: the copy is %v, %v", name, info, err)
		}
		if content, err := os.ReadFile(target); err != nil || string(content) != "content" {
			t.Errorf("%s: the copy has %q, %v", name, content, err)
		}
		if err := Copy(target, source, c.more); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: over a file: %v", name, err)
		}
	}
	if err := Copy(filepath.Join(folder, "x"), filepath.Join(folder, "none"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if err := Copy(filepath.Join(folder, "x"), folder, 0); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("of a folder: %v", err)
	}
}
