package volume

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Places in ext4's superblock, in bytes (Linux, Documentation/filesystems/ext4/super.rst).
const (
	superblockOffset = 1024
	superblockSize   = 1024
	countLowOffset   = 0x4 // of blocks
	logSizeOffset    = 0x18
	magicOffset      = 0x38
	uuidOffset       = 0x68
	seedOffset       = 0xec // of the hashes of names in folders
	countHighOffset  = 0x150
	checksumOffset   = 0x3fc

	superblockMagic = 0xef53
	// maxTemplate bounds a template, in bytes.
	maxTemplate = 256 << 20
	// pieceSize is how many bytes are written at once.
	pieceSize = 1 << 20
)

// writeTemplate writes the file system that a volume begins with, zeros included: every
// one of its sectors can be read then. It has a UUID and a hash seed of its own, so
// that nobody knows how names will be hashed.
func (v *Volume) writeTemplate(ctx context.Context, template io.Reader, random io.Reader) (err error) {
	decoder, err := zstd.NewReader(template, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return fmt.Errorf("read the template: %w", err)
	}
	defer decoder.Close()
	device, err := os.OpenFile(v.device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, device.Close()) }()
	size, err := copyTemplate(ctx, device, decoder, random)
	if err != nil {
		return err
	}
	if size > v.size {
		return fmt.Errorf("the template has %d bytes, more than the volume's %d", size, v.size)
	}
	if err := device.Sync(); err != nil {
		return fmt.Errorf("write the file system: %w", err)
	}
	return nil
}

// copyTemplate copies the template and returns its size in bytes.
func copyTemplate(ctx context.Context, device io.WriterAt, template, random io.Reader) (int64, error) {
	piece := make([]byte, pieceSize)
	size := int64(0)
	for {
		n, err := io.ReadFull(template, piece)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, fmt.Errorf("read the template: %w", err)
		}
		last := err != nil
		if size == 0 {
			if err := makeUnique(piece[:n], random); err != nil {
				return 0, err
			}
		}
		if size+int64(n) > maxTemplate || n%blockSize != 0 {
			return 0, errors.New("the template isn't one of whole blocks, or is too large")
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if _, err := device.WriteAt(piece[:n], size); err != nil {
			return 0, fmt.Errorf("write the file system: %w", err)
		}
		size += int64(n)
		if last {
			return size, nil
		}
	}
}

// makeUnique gives the file system that begins so a random UUID and hash seed. The
// checksums of its other parts don't depend on them: it has a checksum seed.
func makeUnique(beginning []byte, random io.Reader) error {
	if len(beginning) < superblockOffset+superblockSize {
		return errors.New("the template is too short for a file system")
	}
	superblock := beginning[superblockOffset:][:superblockSize]
	le := binary.LittleEndian
	if le.Uint16(superblock[magicOffset:]) != superblockMagic || le.Uint32(superblock[checksumOffset:]) != superblockSum(superblock) {
		return errors.New("the template isn't an ext4 file system with checksums")
	}
	for _, field := range [][]byte{superblock[uuidOffset:][:16], superblock[seedOffset:][:16]} {
		if _, err := io.ReadFull(random, field); err != nil {
			return fmt.Errorf("make a UUID: %w", err)
		}
	}
	// As random UUIDs are (RFC 9562, section 5.4).
	superblock[uuidOffset+6] = superblock[uuidOffset+6]&0x0f | 0x40
	superblock[uuidOffset+8] = superblock[uuidOffset+8]&0x3f | 0x80
	le.PutUint32(superblock[checksumOffset:], superblockSum(superblock))
	return nil
}

// superblockSum is the checksum of a superblock: CRC-32C without the last inversion.
func superblockSum(superblock []byte) uint32 {
	return ^crc32.Checksum(superblock[:checksumOffset], crc32.MakeTable(crc32.Castagnoli))
}

// fileSystemSize returns the size in bytes of the file system that a device has. While
// it is mounted, the kernel shows the superblock as it is in memory.
func fileSystemSize(device io.ReaderAt) (int64, error) {
	superblock := make([]byte, superblockSize)
	if _, err := device.ReadAt(superblock, superblockOffset); err != nil {
		return 0, fmt.Errorf("read the superblock: %w", err)
	}
	le := binary.LittleEndian
	logSize, high := le.Uint32(superblock[logSizeOffset:]), le.Uint32(superblock[countHighOffset:])
	if le.Uint16(superblock[magicOffset:]) != superblockMagic || logSize != 2 || high > 1<<16 {
		return 0, errors.New("it has no ext4 file system of blocks of 4096 bytes")
	}
	return int64(uint64(high)<<32|uint64(le.Uint32(superblock[countLowOffset:]))) * blockSize, nil
}
