package machine

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/built"
	"powercloud.unidatum.com/tools/lint"
)

// root is set by Bazel to the folder with QEMU and all that it needs.
var root string

// errNoTools is returned where there is no such folder.
var errNoTools = errors.New("only Bazel unpacks QEMU: run this test by `bazel test`, or see docs/building.md")

// tools is the folder with QEMU, its firmware and swtpm, laid out as the root of
// a Debian system.
type tools string

// findTools finds the folder.
func findTools() (tools, error) {
	folder := os.Getenv("MACHINE_TOOLS")
	if folder == "" && root == "" {
		return "", errNoTools
	}
	var err error
	if folder == "" {
		folder, err = lint.Runfile(root)
	} else {
		folder, err = filepath.Abs(folder)
	}
	if err != nil {
		return "", fmt.Errorf("find QEMU: %w", err)
	}
	if _, err := os.Stat(filepath.Join(folder, "usr", "share", "qemu")); err != nil {
		return "", fmt.Errorf("find QEMU: %w", err)
	}
	return tools(folder), nil
}

// needTools is findTools for a test, which is skipped where there is no such folder.
func needTools(t testing.TB) tools {
	t.Helper()
	found, err := findTools()
	if errors.Is(err, errNoTools) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (t tools) path(name string) string { return filepath.Join(string(t), filepath.FromSlash(name)) }

// command prepares a program of the folder, with the loader and the libraries
// that are there too. Of this program's environment it sees nothing.
func (t tools) command(program string, arguments ...string) *exec.Cmd {
	libraries := []string{"lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu/swtpm"}
	for i, folder := range libraries {
		libraries[i] = t.path(folder)
	}
	start := []string{"--library-path", strings.Join(libraries, ":"), t.path(program)}
	command := exec.Command(t.path("lib64/ld-linux-x86-64.so.2"), append(start, arguments...)...)
	command.Env = []string{"QEMU_MODULE_DIR=" + t.path("usr/lib/x86_64-linux-gnu/qemu"), "TMPDIR=" + os.TempDir()}
	return command
}

// Run runs a program of the folder that QEMU comes from, such as
// "usr/bin/sbsign", and returns what it printed. The test fails where the program
// does. Without Bazel, the test is skipped.
func Run(t testing.TB, program string, arguments ...string) string {
	t.Helper()
	out, err := needTools(t).command(program, arguments...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", program, err, out)
	}
	return string(out)
}

// emulator is the QEMU for an architecture.
func (a Architecture) emulator() string {
	if a == ARM64 {
		return "usr/bin/qemu-system-aarch64"
	}
	return "usr/bin/qemu-system-x86_64"
}

// firmware returns the firmware's program and its empty store of variables.
func (c Config) firmware(t tools) (code, store string) {
	switch {
	case c.Architecture == ARM64: // Which has Secure Boot, and no SMM.
		return t.path("usr/share/AAVMF/AAVMF_CODE.fd"), t.path("usr/share/AAVMF/AAVMF_VARS.fd")
	case c.Firmware == SecureBoot:
		return t.path("usr/share/OVMF/OVMF_CODE_4M.secboot.fd"), t.path("usr/share/OVMF/OVMF_VARS_4M.fd")
	}
	return t.path("usr/share/OVMF/OVMF_CODE_4M.fd"), t.path("usr/share/OVMF/OVMF_VARS_4M.fd")
}

// Image returns the path of the image that the rule vm_test gives a test, and
// its architecture. Without one, the test is skipped.
func Image(t testing.TB) (path string, architecture Architecture) {
	t.Helper()
	return built.Path(t, "MACHINE_IMAGE"), Architecture(os.Getenv("MACHINE_ARCHITECTURE"))
}
