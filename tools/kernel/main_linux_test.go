package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	good := []string{"-architecture", "arm64", "-root", "r", "-source", "s", "-scratch", "w", "-image", "i", "-config", "c", "-map", "m", "a", "b"}
	o, err := parse(good)
	if err != nil || o.architecture.linux != "arm64" || o.scratch != "w" || !slices.Equal(o.fragments, []string{"a", "b"}) {
		t.Errorf("it was read as %+v, %v", o, err)
	}
	for want, arguments := range map[string][]string{
		"it must be amd64 or arm64": append([]string{"-architecture", "i386"}, good[2:]...),
		"every flag":                good[2:],
		"at least one fragment":     good[:14],
		"not defined":               append([]string{"-other"}, good...),
		"it takes every flag":       append(slices.Clone(good[:12]), "-map", "", "a"),
	} {
		if _, err := parse(arguments); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", arguments, err, want)
		}
	}
}

func TestReadFragments(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a", "CONFIG_A=y  # Why.\n")
	b := write("b", "CONFIG_B=n  # Why.\n")
	if lines, err := readFragments([]string{a, b}); err != nil || len(lines) != 2 {
		t.Errorf("they were read as %v, %v", lines, err)
	}
	for want, names := range map[string][]string{
		"is not of the form":  {a, write("bare", "CONFIG_B=y\n")},
		"is set in":           {a, b, write("twice", "CONFIG_A=y  # Why.\n")},
		"read a fragment":     {filepath.Join(folder, "missing")},
		"is not y, n, a numb": {write("module", "CONFIG_A=m  # Why.\n")},
	} {
		if _, err := readFragments(names); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

func TestRunQuietly(t *testing.T) {
	err := runQuietly(exec.Command("/bin/sh", "-c", "for i in $(seq 100); do echo line $i; done; echo wrong >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "line 100\nwrong") {
		t.Errorf("the error is %v", err)
	}
	if got := strings.Count(err.Error(), "line "); got != shown-1 {
		t.Errorf("it shows %d lines", got)
	}
	if err := runQuietly(exec.Command("/bin/sh", "-c", "echo fine")); err != nil {
		t.Error(err)
	}
}
