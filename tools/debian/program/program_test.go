package program_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/debian/program"
)

func TestCommand(t *testing.T) {
	packages, ok, err := program.Packages(os.Getenv("XZ"), "xz-utils/usr/bin/xz")
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skip("Bazel unpacks a package for this test: bazel test //tools/debian/program:all")
	}
	command, err := program.Command(t.Context(), packages, "xz-utils/usr/bin/xz", "--version")
	if err != nil {
		t.Fatal(err)
	}
	// The library is the package's as well, of the same version as the program.
	out, err := command.CombinedOutput()
	if lines := strings.Fields(string(out)); err != nil || len(lines) != 6 || lines[3] != lines[5] {
		t.Errorf("it printed %q, %v", out, err)
	}
}

func TestCommandMissing(t *testing.T) {
	if _, err := program.Command(t.Context(), t.TempDir(), "a/b"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestExplain(t *testing.T) {
	failure := errors.New("exit status 1")
	if got := program.Explain(failure, "one\ntwo\n").Error(); got != "exit status 1: two" {
		t.Error(got)
	}
	if got := program.Explain(failure, ""); got != failure {
		t.Error(got)
	}
}
