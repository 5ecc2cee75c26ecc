// Package gpt finds a partition by its type among a machine's disks, and makes it
// as large as its disk has become.
//
// The kernel reads the partition tables too, but tells no program the types of
// partitions, and looks at the primary table only. So the tables are read here
// again, the backup where the primary is damaged, and then both are written: a
// table that is cut off while it is written leaves the other (UEFI specification
// 2.10, section 5.3). Disks are addressed in their own sectors, of 512 or 4096
// bytes.
package gpt

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/diskfs/go-diskfs/backend"
	"github.com/diskfs/go-diskfs/partition/gpt"
)

const (
	// alignment is what the end of a partition that grows is rounded down to, in
	// bytes: the image's partition ends a mebibyte before its disk does.
	alignment = 1 << 20
	// entrySize is the only size of a table's entries that is in use, in bytes.
	entrySize = 128
	// maxEntries bounds a table; those in use have 128 entries.
	maxEntries = 4096
	// headerSize is the size in bytes of what is used of a header's sector.
	headerSize = 92
)

// table is the partition table of a disk.
type table struct {
	gpt *gpt.Table
	// size is the disk's and sector that of its sectors, in bytes.
	size   int64
	sector int64
}

// readTable reads the partition table of a disk of that size, with sectors of
// that size, both in bytes.
func readTable(disk io.ReaderAt, size int64, sector int) (*table, error) {
	switch {
	case sector != 512 && sector != 4096:
		return nil, fmt.Errorf("its sectors have %d bytes, and not 512 or 4096", sector)
	case size < 8*int64(sector):
		return nil, errors.New("it is too small for a partition table")
	}
	sectors := size / int64(sector)
	for _, at := range []int64{1, sectors - 1} {
		if err := checkHeader(disk, at*int64(sector), sectors); err != nil {
			return nil, err
		}
	}
	read, err := gpt.Read(&storage{ReaderAt: disk, size: size}, sector, sector)
	if err != nil {
		return nil, err
	}
	for _, p := range read.Partitions {
		if p.Start < 2 || p.End < p.Start || p.End >= uint64(sectors) {
			return nil, fmt.Errorf("its partition %d is not on the disk", p.Index)
		}
	}
	return &table{gpt: read, size: size, sector: int64(sector)}, nil
}

// checkHeader bounds what the module would believe of a table's header. Without
// the signature of one there is nothing to check.
func checkHeader(disk io.ReaderAt, offset, sectors int64) error {
	header := make([]byte, headerSize)
	if _, err := disk.ReadAt(header, offset); err != nil {
		return fmt.Errorf("read a partition table: %w", err)
	}
	if string(header[:8]) != "EFI PART" {
		return nil
	}
	le := binary.LittleEndian
	first, count, size := le.Uint64(header[72:]), le.Uint32(header[80:]), le.Uint32(header[84:])
	if size != entrySize || count > maxEntries || first >= uint64(sectors) {
		return fmt.Errorf("its partition table has %d entries of %d bytes in sector %d", count, size, first)
	}
	return nil
}

// last returns the index of the last sector that a partition can end with.
func (t *table) last(p *gpt.Partition) uint64 {
	for _, other := range t.gpt.Partitions {
		if other.Start > p.Start {
			return p.End // It can't grow over another one.
		}
	}
	end := (int64(t.gpt.LastDataSector()) + 1) * t.sector / alignment * alignment
	return max(p.End, uint64(end/t.sector)-1)
}

// find returns the table's partitions of a type.
func (t *table) find(kind string) []*gpt.Partition {
	var found []*gpt.Partition
	for _, p := range t.gpt.Partitions {
		if strings.EqualFold(string(p.Type), kind) {
			found = append(found, p)
		}
	}
	return found
}

// A write is one step of bringing a table up to date.
type write struct {
	offset  int64
	content []byte
}

// writes returns what the table is made of on the disk: the backup's entries and
// header, then the primary's. The order matters, see package gpt.
func (t *table) writes() ([]write, error) {
	recorder := &storage{size: t.size}
	t.gpt.ProtectiveMBR = false // The module writes one that some firmware refuses.
	if err := t.gpt.Write(recorder, t.size); err != nil {
		return nil, err
	}
	for _, w := range recorder.writes {
		end := w.offset + int64(len(w.content))
		for _, p := range t.gpt.Partitions {
			if w.offset <= int64(p.End)*t.sector+t.sector-1 && end > int64(p.Start)*t.sector {
				return nil, fmt.Errorf("its partition %d lies where a partition table belongs", p.Index)
			}
		}
		if w.offset < t.sector || end > t.size {
			return nil, errors.New("its partition table says that it belongs elsewhere")
		}
	}
	return recorder.writes, nil
}

// resize makes the table one for the whole disk, and a partition as large as it
// can be.
func (t *table) resize(index int) error {
	t.gpt.Resize(uint64(t.size))
	for _, p := range t.gpt.Partitions {
		if p.Index == index {
			p.End = t.last(p)
			p.Size = (p.End - p.Start + 1) * uint64(t.sector)
			return nil
		}
	}
	return fmt.Errorf("it has no partition %d any more", index)
}

// A disk can be written to.
type disk interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
}

// grow brings both tables of a disk up to date, with the partition of that index
// as large as it can be. It writes nothing that is there already.
func grow(d disk, size int64, sector, index int) (*gpt.Partition, error) {
	t, err := readTable(d, size, sector)
	if err != nil {
		return nil, err
	}
	if t.gpt.RecoveredFromBackup {
		// Until the primary is back as it was, the backup is all that there is.
		steps, err := t.writes()
		if err != nil {
			return nil, err
		}
		primary := slices.DeleteFunc(steps, func(w write) bool { return w.offset > size/2 })
		if err := apply(d, primary); err != nil {
			return nil, fmt.Errorf("restore the partition table: %w", err)
		}
	}
	if err := t.resize(index); err != nil {
		return nil, err
	}
	steps, err := t.writes()
	if err != nil {
		return nil, err
	}
	protective, err := protect(d, size, sector)
	if err != nil {
		return nil, err
	}
	if err := apply(d, append(steps, protective...)); err != nil {
		return nil, fmt.Errorf("write the partition table: %w", err)
	}
	for _, p := range t.gpt.Partitions {
		if p.Index == index {
			return p, nil
		}
	}
	return nil, fmt.Errorf("it has no partition %d any more", index)
}

// apply writes what differs from what is on the disk, each step synced before the
// next.
func apply(d disk, steps []write) error {
	for _, step := range steps {
		there := make([]byte, len(step.content))
		if _, err := d.ReadAt(there, step.offset); err != nil {
			return err
		}
		if slices.Equal(there, step.content) {
			continue
		}
		if _, err := d.WriteAt(step.content, step.offset); err != nil {
			return err
		}
		if err := d.Sync(); err != nil {
			return err
		}
	}
	return nil
}

// protect returns the write that gives the partition of a protective MBR the size
// of the disk, in sectors, or as many as fit in its field (UEFI specification
// 2.10, section 5.2.3).
func protect(d io.ReaderAt, size int64, sector int) ([]write, error) {
	const kind, length, signature = 446 + 4, 446 + 12, 510
	content := make([]byte, sector)
	if _, err := d.ReadAt(content, 0); err != nil {
		return nil, err
	}
	if content[kind] != 0xee || content[signature] != 0x55 || content[signature+1] != 0xaa {
		return nil, nil // It is none, and firmware that minds has not started this machine.
	}
	sectors := min(size/int64(sector)-1, math.MaxUint32)
	binary.LittleEndian.PutUint32(content[length:], uint32(sectors))
	return []write{{0, content}}, nil
}

// storage is what the module reads tables from, and records what it writes.
type storage struct {
	io.ReaderAt
	size   int64
	writes []write
}

var _ backend.WritableFile = (*storage)(nil)

// WriteAt records a write.
func (s *storage) WriteAt(content []byte, offset int64) (int, error) {
	s.writes = append(s.writes, write{offset, slices.Clone(content)})
	return len(content), nil
}

// Seek tells the module the size of the disk, which is all that it asks.
func (s *storage) Seek(offset int64, whence int) (int64, error) {
	if whence != io.SeekEnd || offset != 0 {
		return 0, errors.ErrUnsupported
	}
	return s.size, nil
}

// Stat, Read and Close are never called by the module.
func (s *storage) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }
func (s *storage) Read([]byte) (int, error)   { return 0, errors.ErrUnsupported }
func (s *storage) Close() error               { return nil }
