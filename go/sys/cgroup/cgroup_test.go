package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestDelegate(t *testing.T) {
	dir := fake(t, map[string]string{"cgroup.controllers": "cpu memory\n", "cgroup.subtree_control": ""})
	missing, err := Delegate(dir, "cpu", "io", "memory")
	if err != nil || !slices.Equal(missing, []string{"io"}) {
		t.Errorf("missing %q, %v", missing, err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control")); string(b) != "+cpu +memory" || err != nil {
		t.Errorf("delegated %q, %v", b, err)
	}
	if _, err := Delegate(filepath.Join(dir, "none"), "cpu"); err == nil {
		t.Error("a folder that isn't there was taken")
	}
}

func TestGroup(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"", "a/b", "..", ".hidden"} {
		if _, err := Make(dir, name); err == nil {
			t.Errorf("%q was taken for a name", name)
		}
	}
	g, err := Make(dir, "pcd")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Make(dir, "pcd"); err != nil {
		t.Error("again:", err)
	}
	if err := g.Kill(); err == nil {
		t.Error("a folder that is no group was killed")
	}
	// Empty is the last, for what follows.
	for _, text := range []string{"populated 1\nfrozen 0\n", "populated 0\nfrozen 1\n"} {
		if err := os.WriteFile(filepath.Join(g.Path, "cgroup.events"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := g.Populated(); got != strings.HasPrefix(text, "populated 1") || err != nil {
			t.Errorf("%q: populated %v, %v", text, got, err)
		}
	}
	if err := g.WaitEmpty(t.Context()); err != nil {
		t.Error(err)
	}
	if err := os.Remove(filepath.Join(g.Path, "cgroup.events")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := g.Remove(); err != nil {
			t.Error(err)
		}
	}
}
