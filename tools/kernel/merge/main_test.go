package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a", "# A heading.\n\nCONFIG_A=y  # Why.\n")
	b := write("b", "CONFIG_B=n  # Why.\n")
	first, second := write("first", "# A monitor.\nconsole=tty0\n"), write("second", "# Soon.\npanic=10\n")
	quote := write("quote", "# Quoted.\na=\"b\"\n")
	output := filepath.Join(folder, "output")
	for want, arguments := range map[string][]string{
		"CONFIG_A=y\n# CONFIG_B is not set\n": {a, b},
		"CONFIG_A=y\nCONFIG_CMDLINE=\"console=tty0 panic=10\"\nCONFIG_CMDLINE_BOOL=y\nCONFIG_CMDLINE_OVERRIDE=y\n": {"-architecture", "amd64", "-command-line", first + "," + second, a},
		"CONFIG_A=y\nCONFIG_CMDLINE=\"console=tty0\"\nCONFIG_CMDLINE_FORCE=y\n":                                    {"-architecture", "arm64", "-command-line", first, a},
	} {
		if err := run(append([]string{"-output", output}, arguments...)); err != nil {
			t.Errorf("%q: %v", arguments, err)
			continue
		}
		if got, err := os.ReadFile(output); err != nil || string(got) != want {
			t.Errorf("%q gave %q, %v, want %q", arguments, got, err, want)
		}
	}
	for want, arguments := range map[string][]string{
		"is not of the form":  {a, write("bare", "CONFIG_B=y\n")},
		"is set in":           {a, b, write("twice", "CONFIG_A=y  # Why.\n")},
		"read a fragment":     {filepath.Join(folder, "missing")},
		"is not y, n, a numb": {write("module", "CONFIG_A=m  # Why.\n")},
		"at least one":        {},
		"only with":           {"-command-line", first, a},
		"or arm64, not i386":  {"-architecture", "i386", "-command-line", first, a},
		"a quote":             {"-architecture", "arm64", "-command-line", quote, a},
		"command line":        {"-architecture", "arm64", "-command-line", a, a},
		"CONFIG_CMDLINE is set in": {"-architecture", "arm64", "-command-line", first,
			write("other", "CONFIG_CMDLINE=\"x\"  # Why.\n")},
	} {
		if err := run(append([]string{"-output", output}, arguments...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", arguments, err, want)
		}
	}
}
