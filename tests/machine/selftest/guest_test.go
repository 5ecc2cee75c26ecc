package selftest

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"powercloud.unidatum.com/tests/built"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/initramfs"
	"powercloud.unidatum.com/tests/machine/modules"
)

// kernel returns a kernel, whose init is the guest, with modules of these names
// and those that they need.
func kernel(t *testing.T, architecture machine.Architecture, names ...string) *machine.Kernel {
	t.Helper()
	linux, guest, console := "LINUX_AMD64", "GUEST_AMD64", "ttyS0"
	if architecture == machine.ARM64 {
		linux, guest, console = "LINUX_ARM64", "GUEST_ARM64", "ttyAMA0"
	}
	tree := built.Path(t, linux)
	files, err := filepath.Glob(filepath.Join(tree, "boot", "vmlinuz-*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the kernel is not one file: %v, %v", files, err)
	}
	file := filepath.Join(t.TempDir(), "initramfs")
	archive, err := initramfs.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	err = archive.File("init", built.Path(t, guest))
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
