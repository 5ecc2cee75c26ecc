// Package disk writes the disk image: a GPT with an EFI system partition, which
// holds the system as one file where firmware looks for it, and an empty state
// partition. docs/formats.md, "Disk layout", describes it.
package disk

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/partition/gpt"
	"github.com/google/uuid"

	"powercloud.unidatum.com/go/node/volume/header"
)

const (
	mebibyte = 1 << 20
	// SectorSize is the disk's in bytes. A GPT counts in them.
	SectorSize = 512
	// Size is the image's in bytes.
	Size = 1024 * mebibyte
	// SystemOffset is where the EFI system partition begins, in bytes.
	SystemOffset = 1 * mebibyte
	// SystemSize is the EFI system partition's size in bytes: room for three
	// images, which an upgrade needs.
	SystemSize = 256 * mebibyte
	// StateOffset is where the state partition begins, in bytes. It ends a
	// mebibyte before the disk does, and is all zeros.
	StateOffset = SystemOffset + SystemSize
	// StateSize is the state partition's size in bytes. Nodes make it larger when
	// the disk is.
	StateSize = Size - StateOffset - 1*mebibyte
)

// The partitions' names.
const (
	SystemName = "EFI system"
	StateName  = "PowerCloud state"
)

// bootPaths is where firmware looks for a system (UEFI specification 2.10,
// section 3.5.1.1).
var bootPaths = map[string]string{
	"amd64": "/EFI/BOOT/BOOTX64.EFI",
	"arm64": "/EFI/BOOT/BOOTAA64.EFI",
}

// BootPath returns where firmware for the architecture, in Go's terms, looks for
// a system on a disk without boot entries.
func BootPath(architecture string) (string, error) {
	path, ok := bootPaths[architecture]
	if !ok {
		return "", fmt.Errorf("there is no disk image for the architecture %q, only for amd64 and arm64", architecture)
	}
	return path, nil
}

// Write writes a disk image with the system, one EFI file for the architecture, to
// an empty file. The file becomes sparse. What is written follows from the
// arguments alone, provided that the environment's SOURCE_DATE_EPOCH is
// FileTime, which the FAT module takes the times of files from.
func Write(image *os.File, architecture string, system []byte) error {
	if err := write(image, architecture, system); err != nil {
		return fmt.Errorf("write a disk image: %w", err)
	}
	return nil
}

func write(image *os.File, architecture string, system []byte) error {
	path, err := BootPath(architecture)
	if err != nil {
		return err
	}
	info, err := image.Stat()
	if err != nil {
		return err
	}
	if info.Size() != 0 {
		return errors.New("the file isn't empty")
	}
	if err := image.Truncate(Size); err != nil {
		return err
	}
	storage := file.New(image, false)
	if err := writeSystem(storage, path, system); err != nil {
		return err
	}
	table := partitions(sha256.Sum256(system))
	writable, err := storage.Writable()
	if err != nil {
		return err
	}
	if err := table.Write(writable, Size); err != nil {
		return err
	}
	return writeProtectiveAddresses(image)
}

// partitions returns the partition table. Its unique GUIDs follow from the
// system's digest, so that two images have the same only if they are the same.
func partitions(digest [sha256.Size]byte) *gpt.Table {
	guid := func(purpose string) string {
		// A GUID of version 8 is one of the maker's own kind (RFC 9562).
		return uuid.NewHash(sha256.New(), uuid.MustParse(header.PartitionType), append([]byte(purpose+"\x00"), digest[:]...), 8).String()
	}
	return &gpt.Table{
		LogicalSectorSize:  SectorSize,
		PhysicalSectorSize: SectorSize,
		ProtectiveMBR:      true,
		GUID:               guid("disk"),
		Partitions: []*gpt.Partition{
			partition(1, gpt.EFISystemPartition, SystemName, guid("system"), SystemOffset, SystemSize),
			partition(2, header.PartitionType, StateName, guid("state"), StateOffset, StateSize),
		},
	}
}

// partition returns a partition from an offset on, both offset and size in bytes.
func partition(index int, kind gpt.Type, name, guid string, offset, size uint64) *gpt.Partition {
	return &gpt.Partition{
		Index: index, Type: kind, Name: name, GUID: guid,
		Start: offset / SectorSize, End: (offset+size)/SectorSize - 1, Size: size,
	}
}

// writeProtectiveAddresses writes, in the protective MBR, the partition's first and
// last sectors as cylinder, head and sector, as the UEFI specification 2.10 has
// them in section 5.2.3. The module leaves them zero, which some firmware takes
// for a disk without a GPT.
func writeProtectiveAddresses(image *os.File) error {
	const entry = 446
	for at, address := range map[int64][]byte{
		entry + 1: {0x00, 0x02, 0x00}, // the second sector
		entry + 5: {0xff, 0xff, 0xff}, // beyond what can be expressed
	} {
		if _, err := image.WriteAt(address, at); err != nil {
			return err
		}
	}
	return nil
}
