package selftest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/initramfs"
	"powercloud.unidatum.com/tests/machine/modules"
	"powercloud.unidatum.com/tools/lint"
)

// patience is how long the machines of one test have. The slowest takes a tenth
// of it where nothing else runs.
const patience = 5 * time.Minute

// patient is the context of one test.
func patient(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, fmt.Errorf("%v were not enough", patience))
	t.Cleanup(cancel)
	return ctx
}

// built returns the path of what Bazel built for the test, by the name of the
// variable that Bazel puts it in.
func built(t *testing.T, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Skip("only Bazel builds what the machines run: bazel test //tests/machine/selftest:all")
	}
	path, err := lint.Runfile(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// kernel returns a kernel, whose init is the guest, with modules of these names
// and those that they need.
func kernel(t *testing.T, architecture machine.Architecture, names ...string) *machine.Kernel {
	t.Helper()
	linux, guest, console := "LINUX_AMD64", "GUEST_AMD64", "ttyS0"
	if architecture == machine.ARM64 {
		linux, guest, console = "LINUX_ARM64", "GUEST_ARM64", "ttyAMA0"
	}
	tree := built(t, linux)
	files, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinuz-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the kernel is not one file: %v, %v", files, err)
	}
	file := filepath.Join(t.TempDir(), "initramfs")
	archive, err := initramfs.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.File("init", built(t, guest))
	if len(names) > 0 {
		paths, orderErr := modules.Order(filepath.Join(tree, "lib", "modules"), names...)
		err = errors.Join(err, orderErr)
		for i, path := range paths {
			err = errors.Join(err, archive.File(fmt.Sprintf("modules/%03d-%s", i, filepath.Base(path)), path))
		}
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		t.Fatal(err)
	}
	return &machine.Kernel{Path: files[0], Initramfs: file, CommandLine: "quiet panic=1 console=" + console}
}
