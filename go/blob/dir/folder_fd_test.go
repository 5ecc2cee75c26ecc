//go:build linux || darwin

package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestRenameNew moves files to names that are free and to one that isn't, in both ways
// that file systems offer.
func TestRenameNew(t *testing.T) {
	for title, move := range map[string]func(f *fdFolder, name, newName string) error{
		"renaming": func(f *fdFolder, name, newName string) error { return f.renameNew(name, f, newName) },
		"linking":  func(f *fdFolder, name, newName string) error { return f.linkNew(name, f, newName) },
	} {
		dir := t.TempDir()
		for _, name := range []string{"first", "second"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		root, err := openRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		f := root.(*fdFolder)
		if err := move(f, "first", "place"); err != nil {
			t.Fatalf("%s: %v", title, err)
		}
		if err := move(f, "second", "place"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s to a name that is taken: %v", title, err)
		}
		if err := move(f, "first", "other"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s what was moved: %v", title, err)
		}
		for name, want := range map[string]string{"place": "first", "second": "second"} {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s: %s holds %q, %v", title, name, got, err)
			}
		}
	}
}
