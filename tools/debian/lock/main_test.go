package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/debian/lockfile"
)

const empty = "{\n  \"suite\": \"bookworm\",\n  \"sets\": []\n}\n"

// find is a resolver that has every package but those named "missing".
func find(_ context.Context, suite string, set lockfile.Set) ([]lockfile.Package, error) {
	var packages []lockfile.Package
	for _, name := range set.Requested {
		if name == "missing" {
			return nil, errors.New("there is no such package")
		}
		packages = append(packages, lockfile.Package{
			Name: name, Version: "1", Architecture: set.Architecture, SHA256: strings.Repeat("0", 64),
			File: lockfile.FileName(name, "1", set.Architecture),
		})
	}
	return packages, nil
}

// lock runs the command on the lock file and returns what it then holds.
func lock(t *testing.T, content string, find resolver, arguments ...string) (string, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "lock.json")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	err := run(context.Background(), append([]string{"-file", file}, arguments...), &out, find)
	after, readErr := os.ReadFile(file)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if entries, _ := os.ReadDir(filepath.Dir(file)); len(entries) != 1 {
		t.Errorf("the command left %v", entries)
	}
	return string(after), err
}

func TestSets(t *testing.T) {
	one, err := lock(t, empty, find, "-set", "one", "b", "a")
	if err != nil || !strings.Contains(one, `"closure": true`) || !strings.Contains(one, "a_1_amd64.deb") {
		t.Fatalf("a set was not added (%v): %s", err, one)
	}
	two, err := lock(t, one, find, "-set", "two", "-architecture", "arm64", "-alone", "c")
	if err != nil || !strings.Contains(two, `"closure": false`) || !strings.Contains(two, "c_1_arm64.deb") || !strings.Contains(two, "a_1_amd64.deb") {
		t.Fatalf("a second set was not added (%v): %s", err, two)
	}
	if got, err := lock(t, two, find, "-remove", "two"); err != nil || got != one {
		t.Errorf("a set was not removed (%v): %s", err, got)
	}
	if got, err := lock(t, two, find, "-set", "two", "d"); err != nil || strings.Contains(got, "c_1") || !strings.Contains(got, "d_1_amd64.deb") {
		t.Errorf("a set was not replaced (%v): %s", err, got)
	}
	if got, err := lock(t, two, find); err != nil || got != two {
		t.Errorf("locking anew changed something (%v): %s", err, got)
	}
	newer := func(ctx context.Context, suite string, set lockfile.Set) ([]lockfile.Package, error) {
		packages, err := find(ctx, suite, set)
		for i, p := range packages {
			packages[i].Version, packages[i].File = "2", lockfile.FileName(p.Name, "2", p.Architecture)
		}
		return packages, err
	}
	if got, err := lock(t, two, newer); err != nil || strings.Contains(got, `"1"`) || !strings.Contains(got, "c_2_arm64.deb") {
		t.Errorf("locking anew found no newer version (%v): %s", err, got)
	}
}

func TestErrorsLeaveTheFileAlone(t *testing.T) {
	for want, arguments := range map[string][]string{
		"the lock file has no set three":                       {"-remove", "three"},
		"give -set NAME and packages":                          {"-set", "three"},
		"or -remove NAME, or nothing":                          {"a"},
		"lock the set three: there is no such package":         {"-set", "three", "missing"},
		`the set three: "i386" is not one of`:                  {"-set", "three", "-architecture", "i386", "a"},
		"flag provided but not defined":                        {"-three"},
		`"/" is no name of a set`:                              {"-set", "/", "a"},
		"the set three: the package \"-\": that is no name of": {"-set", "three", "--", "-"},
	} {
		got, err := lock(t, empty, find, arguments...)
		if err == nil || !strings.Contains(err.Error(), want) || got != empty {
			t.Errorf("%q: the error is %v, want one with %q; the file holds %s", arguments, err, want, got)
		}
	}
	if _, err := lock(t, "{}", find); err == nil {
		t.Error("a damaged lock file was accepted")
	}
}
