// Package uki assembles and reads unified kernel images: one EFI program that
// holds a stub, a kernel, its initramfs and its command line.
//
// The format is the UAPI Group's specification UAPI.5, version 1 ("Unified Kernel
// Image"), on top of Microsoft's PE/COFF. The stub is systemd-stub(7). The
// resources are PE sections, which the stub finds by their names in memory.
package uki

import (
	"debug/pe"
	"errors"
	"fmt"
)

// MaxSize is the size in bytes of the largest image that is assembled or read.
// An EFI system partition of 256 MiB holds three of them, as an upgrade needs.
const MaxSize = 80 << 20

// The sections of resources.
const (
	sectionRelease       = ".osrel"
	sectionCommandLine   = ".cmdline"
	sectionKernelRelease = ".uname"
	sectionKernel        = ".linux"
	sectionInitramfs     = ".initrd"
	sectionSBAT          = ".sbat"
)

// The largest resources that are text, in bytes.
const (
	maxRelease       = 4096
	maxCommandLine   = 2047 // of the kernel for arm64, less the closing zero byte
	maxKernelRelease = 64   // of a name that uname(2) returns, less the closing zero byte
	maxSBAT          = 4096
)

// resourceAlignment is what the addresses of resources are multiples of, a page.
// The stub's own sections stay where its linker put them.
const resourceAlignment = 4096

// machines are the architectures, in Go's terms, by their number in PE/COFF.
var machines = map[uint16]string{
	pe.IMAGE_FILE_MACHINE_AMD64: "amd64",
	pe.IMAGE_FILE_MACHINE_ARM64: "arm64",
}

// ErrFormat is what every error of a file that is no valid image wraps.
var ErrFormat = errors.New("not a valid EFI image")

// malformed returns an error that wraps ErrFormat.
func malformed(format string, arguments ...any) error {
	return fmt.Errorf("%w: %s", ErrFormat, fmt.Sprintf(format, arguments...))
}
