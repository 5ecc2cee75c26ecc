package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write writes a file of the test and returns its path.
func write(t *testing.T, folder, name, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTree(t *testing.T) {
	folder := t.TempDir()
	program := write(t, folder, "program", "p", 0o755)
	library := write(t, folder, "library.1.2", "l", 0o644)
	link := filepath.Join(folder, "library.1")
	if err := os.Symlink("library.1.2", link); err != nil {
		t.Fatal(err)
	}
	list := write(t, folder, "list", "usr/bin/p="+program+"\nlib/l.1="+link+"\nlib/l.1.2="+library+"\n", 0o600)
	output := filepath.Join(folder, "out")
	if err := run([]string{"-output", output, "-list", list}); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(filepath.Join(output, "usr/bin/p"))
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o755 {
		t.Errorf("the program is %v, %v", info, err)
	}
	one, err := os.Lstat(filepath.Join(output, "lib/l.1"))
	if err != nil || !one.Mode().IsRegular() {
		t.Fatalf("the library is %v, %v", one, err)
	}
	if two, err := os.Lstat(filepath.Join(output, "lib/l.1.2")); err != nil || !os.SameFile(one, two) {
		t.Errorf("a library of two names was copied twice: %v", err)
	}
}

func TestErrors(t *testing.T) {
	folder := t.TempDir()
	file := write(t, folder, "file", "", 0o600)
	for content, want := range map[string]string{
		"file":                         "where a line is TARGET=SOURCE",
		"../x=" + file:                 "with a relative TARGET",
		"x=" + file + "\nx=" + library: "no such file",
		"x=" + folder:                  "it is no regular file",
		"x=" + file + "\nx=" + file:    "file exists",
	} {
		list := write(t, folder, "list", content, 0o600)
		err := run([]string{"-output", t.TempDir(), "-list", list})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", content, err, want)
		}
	}
	if err := run([]string{"-output", folder}); err == nil {
		t.Error("it made a folder of nothing")
	}
}

const library = "/nonexistent/library"
