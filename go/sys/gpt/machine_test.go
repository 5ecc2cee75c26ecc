package gpt

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestKernel makes partitions on blank disks and has the kernel follow: where they
// grow, and where it found none because the primary table is damaged.
func TestKernel(t *testing.T) {
	disks := strings.Fields(os.Getenv("GPT_DISKS"))
	if len(disks) == 0 {
		t.Skip("it needs a machine with blank disks: bazel test //go/sys/gpt:all")
	}
	m := ThisMachine()
	for _, name := range disks {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(m.Sys, "block", name)
			sector, err := number(folder, "queue/logical_block_size")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.Find(ours); !errors.Is(err, ErrNone) {
				t.Errorf("on blank disks: %v", err)
			}
			disk, err := os.OpenFile(filepath.Join(m.Dev, name), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer disk.Close()
			reread := func() {
				t.Helper()
				if err := errors.Join(disk.Sync(), unix.IoctlSetInt(int(disk.Fd()), unix.BLKRRPART, 0)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := disk.WriteAt(makeDisk(t, 8*mib, 8*mib, int(sector), 2, 6), 0); err != nil {
				t.Fatal(err)
			}
			reread()
			grow := func(want int64) {
				t.Helper()
				found, err := m.Find(ours)
				if err != nil {
					t.Fatal(err)
				}
				grown, err := m.Grow(found)
				if err != nil || grown.Size != want {
					t.Fatalf("%+v, %v", grown, err)
				}
				size, err := number(folder, filepath.Base(grown.Device)+"/size")
				if err != nil || size*kernelSector != want {
					t.Errorf("the kernel has %d sectors, %v", size, err)
				}
				device, err := os.Open(grown.Device)
				if err != nil {
					t.Fatal(err)
				}
				if end, err := device.Seek(0, 2); err != nil || end != want {
					t.Errorf("the device has %d bytes, %v", end, err)
				}
				if err := device.Close(); err != nil {
					t.Error(err)
				}
			}
			size, err := number(folder, "size")
			if err != nil {
				t.Fatal(err)
			}
			want := size*kernelSector - 3*mib
			grow(want)
			reread()
			grow(want)
			// The kernel doesn't look at the backup.
			if _, err := disk.WriteAt(make([]byte, sector), sector); err != nil {
				t.Fatal(err)
			}
			reread()
			if _, err := os.Stat(filepath.Join(folder, name+"2")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the kernel has the partition: %v", err)
			}
			grow(want)
			reread()
			grow(want)
			if _, err := disk.WriteAt(make([]byte, mib), 0); err != nil {
				t.Fatal(err)
			}
			if _, err := disk.WriteAt(make([]byte, mib), size*kernelSector-mib); err != nil {
				t.Fatal(err)
			}
			reread()
		})
	}
}
