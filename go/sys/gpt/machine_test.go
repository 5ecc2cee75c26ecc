package gpt

import (
	"errors"
	"io"
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
	for _, name := range disks {
		t.Run(name, func(t *testing.T) { testKernel(t, name) })
	}
}

func testKernel(t *testing.T, name string) {
	m := ThisMachine()
	folder := filepath.Join(m.Sys, "block", name)
	if _, err := m.Find(ours); !errors.Is(err, ErrNone) {
		t.Errorf("on blank disks: %v", err)
	}
	sector, err := number(folder, "queue/logical_block_size")
	if err != nil {
		t.Fatal(err)
	}
	size, err := number(folder, "size")
	if err != nil {
		t.Fatal(err)
	}
	size *= kernelSector
	disk, err := os.OpenFile(filepath.Join(m.Dev, name), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	write := func(content []byte, offset int64) {
		t.Helper()
		_, err := disk.WriteAt(content, offset)
		// The kernel reads the table again.
		err = errors.Join(err, disk.Sync(), unix.IoctlSetInt(int(disk.Fd()), unix.BLKRRPART, 0))
		if err != nil {
			t.Fatal(err)
		}
	}
	write(makeDisk(t, 8*mib, 8*mib, int(sector), 2, 6), 0)
	growOn(t, folder, size-3*mib)
	write(nil, 0)
	growOn(t, folder, size-3*mib)
	// The kernel doesn't look at the backup.
	write(make([]byte, sector), sector)
	if _, err := os.Stat(filepath.Join(folder, name+"2")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the kernel has the partition: %v", err)
	}
	growOn(t, folder, size-3*mib)
	write(nil, 0)
	growOn(t, folder, size-3*mib)
	// So that the next disk has the only one.
	write(make([]byte, mib), size-mib)
	write(make([]byte, mib), 0)
}

// growOn grows the partition and looks at what the kernel says of it.
func growOn(t *testing.T, folder string, want int64) {
	t.Helper()
	m := ThisMachine()
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
	if end, err := device.Seek(0, io.SeekEnd); err != nil || end != want {
		t.Errorf("the device has %d bytes, %v", end, err)
	}
	if err := device.Close(); err != nil {
		t.Error(err)
	}
}
