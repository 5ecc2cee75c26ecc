package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Setenv("BUILD_WORKING_DIRECTORY", t.TempDir())
	var out bytes.Buffer
	if err := run([]string{"keys"}, &out); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(os.Getenv("BUILD_WORKING_DIRECTORY"), "keys")
	for _, name := range []string{"db.key", "db.crt", "db.cer"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
		if !strings.Contains(out.String(), filepath.Join(folder, name)+": ") {
			t.Errorf("%s isn't mentioned in %q", name, out.String())
		}
	}
	if strings.Contains(out.String(), "BEGIN") {
		t.Error("it printed a key")
	}
	if err := run([]string{"keys"}, &out); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("a second time: %v", err)
	}
	for _, arguments := range [][]string{nil, {""}, {"a", "b"}, {"--help"}} {
		if err := run(arguments, &out); err == nil || !strings.Contains(err.Error(), "it takes one folder") {
			t.Errorf("%q: %v", arguments, err)
		}
	}
}
