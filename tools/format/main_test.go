package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFormatTree(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"a.go":        "package a\nvar  b=1",
		"b.go":        "package b\n",
		"BUILD.bazel": "a(name='b')",
		"c.bzl":       "C = 1\n",
		"d.md":        "x  ",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	if err := formatTree(root, &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "a.go\nBUILD.bazel\n"; got != want {
		t.Errorf("changed %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"a.go":        "package a\n\nvar b = 1\n",
		"BUILD.bazel": "a(name = \"b\")\n",
		"d.md":        "x  ",
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
		}
	}
	if info, err := os.Stat(filepath.Join(root, "a.go")); err != nil || info.Mode() != 0o640 {
		t.Errorf("the mode of a.go is now %v (%v)", info.Mode(), err)
	}
	out.Reset()
	if err := formatTree(root, &out); err != nil || out.Len() > 0 {
		t.Errorf("a second run changed %q (%v)", &out, err)
	}
}

func TestFormatTreeNamesWhatItCannotRead(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"a.go": "package", "b.go": "package b\nvar  c=1", "BUILD": "\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	err := formatTree(root, &out)
	if err == nil || !strings.HasPrefix(err.Error(), "a.go: is not Go: ") {
		t.Errorf("the error is %v", err)
	}
	if got, want := out.String(), "b.go\n"; got != want {
		t.Errorf("changed %q, want %q", got, want)
	}
}
