package configuration

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
)

func TestWrite(t *testing.T) {
	d := Directory(filepath.Join(t.TempDir(), "config", "powercloud"))
	if has, err := d.Has("a"); has || err != nil {
		t.Errorf("in a directory that doesn't exist: %v, %v", has, err)
	}
	if _, err := d.Read("a", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("in a directory that doesn't exist: %v", err)
	}
	for _, content := range []string{"first", "", "second"} {
		if err := d.Write("a", []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := d.Read("a", int64(len(content))); err != nil || string(got) != content {
			t.Errorf("read %q, %v", got, err)
		}
	}
	if has, err := d.Has("a"); !has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
	if _, err := d.Read("a", 5); err == nil {
		t.Error("a file that is too large was read")
	}
	unlock, err := d.Lock()
	if err != nil {
		t.Fatal(err)
	}
	unlock()
	entries, err := os.ReadDir(string(d))
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for path, want := range map[string]fs.FileMode{
		string(d): 0o700, filepath.Dir(string(d)): 0o700, d.path("a"): 0o600, d.path(lockName): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, %v", path, info.Mode().Perm(), err)
		}
	}
}

func TestWriteFails(t *testing.T) {
	d := Directory(t.TempDir())
	if err := os.Mkdir(d.path("a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Write("a", []byte("x")); err == nil {
		t.Error("a directory was replaced")
	}
	entries, err := os.ReadDir(string(d))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind are %v, %v", entries, err)
	}
	file := Directory(d.path("file"))
	if err := os.WriteFile(string(file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := file.Write("a", nil); err == nil {
		t.Error("something was written below a file")
	}
	if _, err := file.Lock(); err == nil {
		t.Error("a file was locked as a directory")
	}
}

func TestNone(t *testing.T) {
	var none Directory
	if err := none.Write("a", nil); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := none.Read("a", 1); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if _, err := none.Lock(); !errors.Is(err, ErrNone) {
		t.Error(err)
	}
	if has, err := none.Has("a"); has || err != nil {
		t.Errorf("%v, %v", has, err)
	}
}

// TestLock: only one at a time is between Lock and unlock.
func TestLock(t *testing.T) {
	d := Directory(t.TempDir())
	inside := d.path("inside")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			unlock, err := d.Lock()
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			// It fails if another one is here.
			if err := os.Mkdir(inside, 0o700); err != nil {
				t.Error(err)
			}
			if err := d.Write("a", nil); err != nil {
				t.Error(err)
			}
			if err := os.Remove(inside); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}
