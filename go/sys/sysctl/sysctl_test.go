package sysctl

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestApply(t *testing.T) {
	root := t.TempDir()
	file := filepath.Join(root, "net", "eth0.5")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	failures := Apply(root, []Setting{
		{Name: "net/missing", Value: "1"},
		{Name: "net/eth0.5", Value: "7"},
		{Name: "../escape", Value: "1"},
	})
	if len(failures) != 2 || !errors.Is(failures[0], ErrAbsent) || errors.Is(failures[1], ErrAbsent) {
		t.Errorf("failures: %v", failures)
	}
	if v, err := Get(root, "net/eth0.5"); v != "7" || err != nil {
		t.Errorf("the value is %q, %v", v, err)
	}
	if _, err := Get(root, "net/missing"); !errors.Is(err, ErrAbsent) {
		t.Errorf("reading what isn't there: %v", err)
	}
	if _, err := Get(root, "/etc/passwd"); err == nil {
		t.Error("a path outside was read")
	}
}

func TestKernelsOwn(t *testing.T) {
	if v, err := Get(Root, "kernel/ostype"); v != "Linux" || err != nil {
		t.Errorf("kernel/ostype is %q, %v", v, err)
	}
}
