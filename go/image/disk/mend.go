package disk

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/diskfs/go-diskfs/backend"
)

// Places in a FAT32 volume (Microsoft, "FAT: General Overview of On-Disk Format",
// 1.03), in bytes from the beginning of a sector or of a directory's entry.
const (
	reservedOffset   = 14 // of the boot sector: sectors before the first table
	hiddenOffset     = 28 // sectors before the volume
	tableOffset      = 36 // sectors of a table
	serialOffset     = 67
	freeOffset       = 488 // of the FSInfo sector: how many clusters are free
	nextOffset       = 492 // where to look for a free one
	entrySize        = 32
	entryHighOffset  = 20 // the upper half of a first cluster's number
	entryLowOffset   = 26
	firstCluster     = 2
	infoSector       = 1
	copiesSector     = 6 // of the boot sector and the FSInfo sector
	clusterSize      = SectorSize
	tables           = 2
	clusterNumberLow = 0x0fffffff // of a table's entry, the bits that are a number
)

// serial is the volume's serial number. Some firmware takes zero for none.
const serial = 0x50434c44

// mend writes what the FAT module leaves undone and fsck.fat misses: the volume's
// serial number and place on the disk, the count of free clusters, and that the
// folder above one in the root is cluster 0, whatever the root's own.
func mend(storage backend.Storage) error {
	writable, err := storage.Writable()
	if err != nil {
		return err
	}
	boot := make([]byte, SectorSize)
	if _, err := storage.ReadAt(boot, SystemOffset); err != nil {
		return fmt.Errorf("read the boot sector: %w", err)
	}
	le := binary.LittleEndian
	le.PutUint32(boot[hiddenOffset:], SystemOffset/SectorSize)
	le.PutUint32(boot[serialOffset:], serial)
	tableStart := SystemOffset + int64(le.Uint16(boot[reservedOffset:]))*SectorSize
	tableSize := int64(le.Uint32(boot[tableOffset:])) * SectorSize
	data := tableStart + tables*tableSize

	table := make([]byte, tableSize)
	if _, err := storage.ReadAt(table, tableStart); err != nil {
		return fmt.Errorf("read the file allocation table: %w", err)
	}
	clusters := (SystemOffset + SystemSize - data) / clusterSize
	free, next := countFree(table, uint32(clusters))
	info := make([]byte, SectorSize)
	if _, err := storage.ReadAt(info, SystemOffset+infoSector*SectorSize); err != nil {
		return fmt.Errorf("read the FSInfo sector: %w", err)
	}
	le.PutUint32(info[freeOffset:], free)
	le.PutUint32(info[nextOffset:], next)

	for _, first := range []int64{0, copiesSector} {
		at := SystemOffset + first*SectorSize
		if _, err := writable.WriteAt(append(bytes.Clone(boot), info...), at); err != nil {
			return fmt.Errorf("write the boot sector: %w", err)
		}
	}
	return mendParents(storage, writable, data)
}

// countFree returns how many of a volume's clusters are free and which is the
// first.
func countFree(table []byte, clusters uint32) (free, next uint32) {
	for n := uint32(firstCluster); n < firstCluster+clusters; n++ {
		if binary.LittleEndian.Uint32(table[4*n:])&clusterNumberLow != 0 {
			continue
		}
		if free == 0 {
			next = n
		}
		free++
	}
	return free, next
}

// mendParents sets what the folder EFI says is the one above it. It is the only
// one in the root; data is where the clusters begin, in bytes.
func mendParents(storage backend.Storage, writable backend.WritableFile, data int64) error {
	root := make([]byte, clusterSize) // the first cluster is the root's
	if _, err := storage.ReadAt(root, data); err != nil {
		return fmt.Errorf("read the root folder: %w", err)
	}
	for entry := range slices.Chunk(root, entrySize) {
		if !bytes.HasPrefix(entry, []byte("EFI        ")) {
			continue
		}
		le := binary.LittleEndian
		cluster := int64(le.Uint16(entry[entryHighOffset:]))<<16 | int64(le.Uint16(entry[entryLowOffset:]))
		above := data + (cluster-firstCluster)*clusterSize + entrySize
		for _, half := range []int64{entryHighOffset, entryLowOffset} {
			if _, err := writable.WriteAt([]byte{0, 0}, above+half); err != nil {
				return fmt.Errorf("write the folder EFI: %w", err)
			}
		}
		return nil
	}
	return errors.New("the volume has no folder EFI")
}
