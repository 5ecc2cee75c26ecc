package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/node/volume/header"
)

const mark = "identity"

// folder returns a place that is used if a file is there.
func folder(t *testing.T) Folder {
	return Folder{Path: filepath.Join(t.TempDir(), "a", "state"), Parts: []string{mark, "log"}, Used: func(folder string) (bool, error) {
		_, err := os.Stat(filepath.Join(folder, mark))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}}
}

func populate(folder string) error { return os.WriteFile(filepath.Join(folder, mark), nil, 0o600) }

func wantFound(t *testing.T, p Place, want Condition) {
	t.Helper()
	if found, err := p.Look(); err != nil || found.Condition != want {
		t.Errorf("%+v, %v", found, err)
	}
}

func TestFolder(t *testing.T) {
	f := folder(t)
	wantFound(t, f, Blank)
	if err := f.Erase(); err != nil {
		t.Errorf("a folder that isn't there can't be erased: %v", err)
	}
	failure := errors.New("no")
	if _, err := f.Create(t.Context(), header.Owner{}, nil, func(string) error { return failure }); !errors.Is(err, failure) {
		t.Error(err)
	}
	wantFound(t, f, Blank)
	if at, err := f.Create(t.Context(), header.Owner{}, nil, populate); err != nil || at != f.Path {
		t.Errorf("%s, %v", at, err)
	}
	wantFound(t, f, Open)
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if _, _, err := f.Unlock(new(header.Key)); err == nil {
		t.Error("a folder was unlocked")
	}
	if space, err := f.Space(); err != nil || space != (Space{}) {
		t.Errorf("%+v, %v", space, err)
	}
	if err := f.Erase(); err != nil {
		t.Fatal(err)
	}
	wantEmpty(t, f)
	wantFound(t, f, Blank)
}

func wantEmpty(t *testing.T, f Folder) {
	t.Helper()
	if entries, err := os.ReadDir(f.Path); err != nil || len(entries) != 0 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// TestEraseCutOff: what was moved away is gone at the next start.
func TestEraseCutOff(t *testing.T) {
	f := folder(t)
	if _, err := f.Create(t.Context(), header.Owner{}, nil, populate); err != nil {
		t.Fatal(err)
	}
	erased := filepath.Join(f.Path, erasedName)
	if err := os.Mkdir(erased, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(f.Path, mark), filepath.Join(erased, mark)); err != nil {
		t.Fatal(err)
	}
	wantFound(t, f, Blank)
	wantEmpty(t, f)
}

// TestForeignFolder: a folder that has somebody's files doesn't become a node's, and what is
// put into a node's later survives it.
func TestForeignFolder(t *testing.T) {
	f := folder(t)
	theirs := filepath.Join(f.Path, "erased")
	if err := os.MkdirAll(theirs, 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Look(); err == nil || !strings.Contains(err.Error(), `"erased"`) {
		t.Errorf("a folder with somebody's files is %+v, %v", found, err)
	}
	if err := os.Rename(theirs, filepath.Join(f.Path, "lost+found")); err != nil {
		t.Fatal(err)
	}
	wantFound(t, f, Blank)
	for _, part := range []string{"log", "notes"} {
		if err := os.WriteFile(filepath.Join(f.Path, part), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := populate(f.Path); err != nil {
		t.Fatal(err)
	}
	wantFound(t, f, Open)
	if err := f.Erase(); err != nil {
		t.Fatal(err)
	}
	var left []string
	entries, err := os.ReadDir(f.Path)
	for _, entry := range entries {
		left = append(left, entry.Name())
	}
	if err != nil || !slices.Equal(left, []string{"lost+found", "notes"}) {
		t.Errorf("an erased folder has %v, %v", left, err)
	}
}

func TestFolderThatCannotBeRead(t *testing.T) {
	failure := errors.New("damaged")
	f := Folder{Path: t.TempDir(), Used: func(string) (bool, error) { return false, failure }}
	if _, err := f.Look(); !errors.Is(err, failure) {
		t.Error(err)
	}
}
