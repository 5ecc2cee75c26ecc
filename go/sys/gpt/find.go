package gpt

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// kernelSector is the size in bytes of the sectors in which the kernel counts,
// whatever the disk's are.
const kernelSector = 512

// Machine says where the kernel shows a machine's disks. Tests have others than
// [ThisMachine].
type Machine struct {
	// Sys is where sysfs is, and Dev where devtmpfs is.
	Sys, Dev string
}

// ThisMachine returns where the kernel of this machine shows its disks.
func ThisMachine() Machine { return Machine{Sys: "/sys", Dev: "/dev"} }

// Partition is a partition of one of the machine's disks.
type Partition struct {
	// Disk is the disk's name, such as "nvme0n1", and Index the partition's number,
	// from 1 on.
	Disk  string
	Index int
	// Device is the path of the partition's own device. The kernel may not have made
	// it yet: Grow has it do so.
	Device string
	// Offset is where on the disk the partition begins and Size is its size, in
	// bytes.
	Offset, Size int64
	// SectorSize is that of the disk's sectors, in bytes.
	SectorSize int
}

var (
	// ErrNone is wrapped by Find's error where no disk has such a partition.
	ErrNone = errors.New("no disk has a partition of this type")
	// ErrSeveral is wrapped by Find's error where there is more than one.
	ErrSeveral = errors.New("several partitions of this type")
)

// Find looks on every disk for the one partition of a type, which is a GUID as
// text. Disks without a partition table, and those that can't be read, are passed
// over; where nothing is found, the error says why they were.
func (m Machine) Find(kind string) (Partition, error) {
	disks, err := m.disks()
	if err != nil {
		return Partition{}, err
	}
	var found []Partition
	var failures []error
	for _, d := range disks {
		here, err := m.findOn(d, kind)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", d.name, err))
		}
		found = append(found, here...)
	}
	switch len(found) {
	case 0:
		return Partition{}, errors.Join(append([]error{fmt.Errorf("%w (%s)", ErrNone, kind)}, failures...)...)
	case 1:
		return found[0], nil
	}
	var names []string
	for _, p := range found {
		names = append(names, p.Device)
	}
	return Partition{}, fmt.Errorf("%w: %s", ErrSeveral, strings.Join(names, ", "))
}

// disk is what the kernel says of one.
type kernelDisk struct {
	name         string
	size         int64
	logicalBlock int
}

// disks lists the machine's disks that hold something, in the order of their
// names. Devices that are made of others, and those in memory, have no hardware.
func (m Machine) disks() ([]kernelDisk, error) {
	entries, err := os.ReadDir(filepath.Join(m.Sys, "block"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list disks: %w", err)
	}
	var disks []kernelDisk
	for _, entry := range entries {
		folder := filepath.Join(m.Sys, "block", entry.Name())
		if _, err := os.Stat(filepath.Join(folder, "device")); err != nil {
			continue
		}
		size, err := number(folder, "size")
		if err != nil || size <= 0 {
			continue // Unplugged in this moment, or without a medium.
		}
		sector, err := number(folder, "queue/logical_block_size")
		if err != nil {
			continue
		}
		disks = append(disks, kernelDisk{entry.Name(), size * kernelSector, int(sector)})
	}
	slices.SortFunc(disks, func(a, b kernelDisk) int { return cmp.Compare(a.name, b.name) })
	return disks, nil
}

// number reads a number that sysfs shows.
func number(folder, name string) (int64, error) {
	content, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64)
}

// findOn returns the partitions of a type on one disk.
func (m Machine) findOn(d kernelDisk, kind string) ([]Partition, error) {
	file, err := os.Open(filepath.Join(m.Dev, d.name))
	if err != nil {
		return nil, err
	}
	t, err := readTable(file, d.size, d.logicalBlock)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	var found []Partition
	for _, p := range t.find(kind) {
		found = append(found, Partition{
			Disk: d.name, Index: p.Index, SectorSize: d.logicalBlock,
			Device: filepath.Join(m.Dev, deviceName(d.name, p.Index)),
			Offset: int64(p.Start) * int64(d.logicalBlock), Size: int64(p.Size),
		})
	}
	return found, nil
}

// deviceName is the kernel's name of a partition's device (block/partitions/core.c).
func deviceName(disk string, index int) string {
	if unicode.IsDigit(rune(disk[len(disk)-1])) {
		return fmt.Sprintf("%sp%d", disk, index)
	}
	return fmt.Sprintf("%s%d", disk, index)
}
