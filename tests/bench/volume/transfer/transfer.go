// Package transfer writes to a place on a disk, and reads from it, from its beginning to
// its end, and says how long that took.
package transfer

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Place is somewhere on a disk: a part of a device, or a file.
type Place struct {
	Name string
	// Path is the device's or the file's, which must exist, and Offset where in it the
	// place begins, in bytes.
	Path   string
	Offset int64
	// Disk is the kernel's name of the disk below, such as "vda". Where it is "", nobody
	// looks whether the disk was written and read.
	Disk string
	// Held is how many bytes of what was written last may be read from memory, and don't
	// come from the disk: what is in the journal of dm-integrity.
	Held int64
}

// Names of the places that are measured.
const (
	Bare   = "bare disk"
	Plain  = "ext4 on the disk"
	Volume = "volume"
	State  = "ext4 on the volume"
)

// Sample is how long it took to write and to read so many bytes.
type Sample struct {
	Place   string        `json:"place"`
	Bytes   int64         `json:"bytes"`
	Written time.Duration `json:"written"`
	Read    time.Duration `json:"read"`
}

// piece is how many bytes a program writes or reads at once.
const piece = 1 << 20

// Measure writes to a place until it lasts, and reads that from the disk.
func (p Place) Measure(size int64) (Sample, error) {
	s := Sample{Place: p.Name, Bytes: size}
	for _, half := range []struct {
		name  string
		took  *time.Duration
		do    func(*os.File, int64) error
		count int
		held  int64
	}{{"write", &s.Written, p.write, sectorsWritten, 0}, {"read", &s.Read, p.read, sectorsRead, p.Held}} {
		before, err := p.moved(half.count)
		if err != nil {
			return s, err
		}
		if *half.took, err = p.timed(size, half.do); err != nil {
			return s, fmt.Errorf("%s the %s: %w", half.name, p.Name, err)
		}
		after, err := p.moved(half.count)
		if err != nil {
			return s, err
		}
		// Otherwise it was the kernel's memory that was measured.
		if p.Disk != "" && (after-before)*sectorSize < size-half.held {
			return s, fmt.Errorf("%s the %s: of %d bytes, the disk has moved %d", half.name, p.Name, size, (after-before)*sectorSize)
		}
	}
	return s, nil
}

// timed opens the place and does something with it.
func (p Place) timed(size int64, do func(*os.File, int64) error) (took time.Duration, err error) {
	file, err := os.OpenFile(p.Path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	start := time.Now()
	if err := do(file, size); err != nil {
		return 0, err
	}
	took = time.Since(start)
	// What comes next finds nothing of it in memory.
	return took, unix.Fadvise(int(file.Fd()), p.Offset, size, unix.FADV_DONTNEED)
}

func (p Place) write(file *os.File, size int64) error {
	content := make([]byte, piece)
	random := rand.New(rand.NewPCG(uint64(size), uint64(p.Offset)))
	for i := range content {
		content[i] = byte(random.Uint32())
	}
	for at := int64(0); at < size; at += piece {
		if _, err := file.WriteAt(content[:min(piece, size-at)], p.Offset+at); err != nil {
			return err
		}
	}
	return file.Sync()
}

func (p Place) read(file *os.File, size int64) error {
	n, err := io.CopyBuffer(io.Discard, struct{ io.Reader }{io.NewSectionReader(file, p.Offset, size)}, make([]byte, piece))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Fields of a disk's statistics (Linux, Documentation/block/stat.rst), and what they
// count in, in bytes.
const (
	sectorsRead    = 2
	sectorsWritten = 6
	sectorSize     = 512
)

// moved returns one of the disk's counts of sectors.
func (p Place) moved(field int) (int64, error) {
	if p.Disk == "" {
		return 0, nil
	}
	content, err := os.ReadFile(filepath.Join("/sys/block", p.Disk, "stat"))
	if err != nil {
		return 0, fmt.Errorf("look what the disk has moved: %w", err)
	}
	fields := strings.Fields(string(content))
	if len(fields) <= field {
		return 0, fmt.Errorf("look what the disk has moved: the kernel says %q", content)
	}
	count, err := strconv.ParseInt(fields[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("look what the disk has moved: %w", err)
	}
	return count, nil
}
