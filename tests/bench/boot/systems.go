package main

import (
	"errors"
	"fmt"
	"os"

	"powercloud.unidatum.com/tools/lint"
)

// These are set by Bazel to where it has put what is started.
var (
	initramfs        string
	powercloudKernel string
	powercloudEFI    string
	powercloudDisk   string
	debianKernel     string
	debianEFI        string
	debianDisk       string
)

// The systems' names.
const (
	namePowerCloud = "powercloud"
	nameDebian     = "debian"
)

// system is what is started, by the paths of its files.
type system struct {
	name      string
	kernel    string
	initramfs string
	efi       string // what the firmware starts
	disk      string // the disk image that has it
	// virtio tells whether it finds a network card and a memory balloon.
	virtio bool
}

// findSystems returns the two systems.
func findSystems() ([]system, error) {
	list := []system{
		{name: namePowerCloud, kernel: powercloudKernel, initramfs: initramfs, efi: powercloudEFI, disk: powercloudDisk, virtio: true},
		{name: nameDebian, kernel: debianKernel, initramfs: initramfs, efi: debianEFI, disk: debianDisk},
	}
	for i := range list {
		s := &list[i]
		for _, path := range []*string{&s.kernel, &s.initramfs, &s.efi, &s.disk} {
			if *path == "" {
				return nil, errors.New("only Bazel builds what this starts: bazel run //tests/bench:boot")
			}
			found, err := lint.Runfile(*path)
			if err != nil {
				return nil, fmt.Errorf("find what is to be started: %w", err)
			}
			*path = found
		}
	}
	return list, nil
}

// sizes are those of a system's files, in bytes.
type sizes struct {
	System    string `json:"system"`
	Kernel    int64  `json:"kernel_bytes"`
	Initramfs int64  `json:"initramfs_bytes"`
	EFI       int64  `json:"efi_bytes"`
}

func sizesOf(systems []system) ([]sizes, error) {
	var list []sizes
	for _, s := range systems {
		one := sizes{System: s.name}
		for path, size := range map[string]*int64{s.kernel: &one.Kernel, s.initramfs: &one.Initramfs, s.efi: &one.EFI} {
			info, err := os.Stat(path)
			if err != nil {
				return nil, fmt.Errorf("look at the size of what is started: %w", err)
			}
			*size = info.Size()
		}
		list = append(list, one)
	}
	return list, nil
}
