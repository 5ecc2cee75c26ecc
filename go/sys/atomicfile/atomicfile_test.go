package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
)

// names returns the names in a directory.
func names(t *testing.T, directory string) []string {
	t.Helper()
	entries, err := os.ReadDir(directory)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func TestWrite(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "a")
	if _, err := Read(path, 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before: %v", err)
	}
	for _, content := range []string{"first", "", "second"} {
		if err := Write(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path, int64(len(content))); err != nil || string(got) != content {
			t.Errorf("read %q, %v", got, err)
		}
	}
	if _, err := Read(path, 5); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if err := Create(path, nil, 0o600); !errors.Is(err, fs.ErrExist) {
		t.Errorf("created where there is one: %v", err)
	}
	if list := names(t, directory); !slices.Equal(list, []string{"a"}) {
		t.Errorf("the directory has %v", list)
	}
}

// TestMode: a file that others could read isn't written into.
func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has other permissions")
	}
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	if err := Write(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o, %v", info.Mode().Perm(), err)
	}
	content := make([]byte, 3)
	if _, err := before.Read(content); err != nil || string(content) != "old" {
		t.Errorf("who had the old file open reads %q, %v", content, err)
	}
}

func TestFailuresLeaveNothing(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "a")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	if err := Write(filepath.Join(directory, "none", "a"), nil, 0o600); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in no directory: %v", err)
	}
	if err := Rename(filepath.Join(directory, "none"), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("renamed without being there: %v", err)
	}
	if list := names(t, directory); !slices.Equal(list, []string{"a"}) {
		t.Errorf("left behind are %v", list)
	}
}

func TestRemoveTemporary(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{".a-0123456789abcdef.tmp", "a.tmp", ".a", "a"} {
		if err := Create(filepath.Join(directory, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := RemoveTemporary(directory); err != nil {
		t.Fatal(err)
	}
	if list := names(t, directory); !slices.Equal(list, []string{".a", "a", "a.tmp"}) {
		t.Errorf("left are %v", list)
	}
	if err := RemoveTemporary(filepath.Join(directory, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
