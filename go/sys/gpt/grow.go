package gpt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Grow makes a partition that Find found as large as its disk: up to the last
// whole mebibyte that a partition can have, unless another partition begins after
// it. It repairs the partition table where one of its two copies is damaged or not
// at the disk's end, and tells the kernel. Where all is as it should be, it writes
// nothing. It returns the partition as it now is.
func (m Machine) Grow(p Partition) (Partition, error) {
	grown, err := m.grow(p)
	if err != nil {
		return Partition{}, fmt.Errorf("grow the partition %s: %w", p.Device, err)
	}
	return grown, nil
}

func (m Machine) grow(p Partition) (grown Partition, err error) {
	size, err := number(filepath.Join(m.Sys, "block", p.Disk), "size")
	if err != nil {
		return Partition{}, err
	}
	file, err := os.OpenFile(filepath.Join(m.Dev, p.Disk), os.O_RDWR, 0)
	if err != nil {
		return Partition{}, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	entry, err := grow(file, size*kernelSector, p.SectorSize, p.Index)
	if err != nil {
		return Partition{}, err
	}
	grown = p
	grown.Offset, grown.Size = int64(entry.Start)*int64(p.SectorSize), int64(entry.Size)
	if grown.Offset != p.Offset {
		return Partition{}, errors.New("it is not where it was")
	}
	return grown, m.tellKernel(file, grown)
}

// tellKernel has the kernel's partition be what the table says. A kernel that
// found the primary table damaged has no partitions at all.
func (m Machine) tellKernel(disk *os.File, p Partition) error {
	folder := filepath.Join(m.Sys, "block", p.Disk, filepath.Base(p.Device))
	start, err := number(folder, "start")
	if errors.Is(err, fs.ErrNotExist) {
		return changePartition(disk, unix.BLKPG_ADD_PARTITION, p)
	}
	if err != nil {
		return err
	}
	size, err := number(folder, "size")
	if err != nil {
		return err
	}
	switch {
	case start*kernelSector != p.Offset:
		return errors.New("the kernel has it in another place; it takes a reboot")
	case size*kernelSector == p.Size:
		return nil
	}
	return changePartition(disk, unix.BLKPG_RESIZE_PARTITION, p)
}

// changePartition has the kernel add a partition or change its size.
func changePartition(disk *os.File, operation int32, p Partition) error {
	partition := unix.BlkpgPartition{Start: p.Offset, Length: p.Size, Pno: int32(p.Index)}
	argument := unix.BlkpgIoctlArg{
		Op:      operation,
		Datalen: int32(unsafe.Sizeof(partition)),
		Data:    (*byte)(unsafe.Pointer(&partition)),
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, disk.Fd(), unix.BLKPG, uintptr(unsafe.Pointer(&argument)))
	runtime.KeepAlive(&partition)
	if errno != 0 {
		return fmt.Errorf("tell the kernel: %w", errno)
	}
	return nil
}
