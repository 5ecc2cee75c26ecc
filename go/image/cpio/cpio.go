// Package cpio writes the archive of an initramfs, so that its bytes follow
// from what is in it alone.
//
// The archive is in the newc format (Documentation/driver-api/early-userspace/buffer-format.rst
// in the kernel's source), the only one that the kernel unpacks, compressed
// with zstd (RFC 8878).
package cpio

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"
)

// Kind is what an entry is.
type Kind int

// The kinds of entries.
const (
	// File is a regular file.
	File Kind = iota
	// Directory is a directory.
	Directory
	// Link is a symbolic link.
	Link
	// CharacterDevice is a device node such as /dev/console.
	CharacterDevice
	// BlockDevice is a device node such as /dev/loop0.
	BlockDevice
)

// Entry is a file of the archive.
type Entry struct {
	// Path is where it is, absolute and clean: "/init".
	Path string
	// Kind is what it is.
	Kind Kind
	// Mode is its permissions, set-user-ID and the like included: at most
	// 0o7777, and 0o777 for a link.
	Mode uint32
	// UID and GID are its owner's and its group's number.
	UID, GID uint32
	// Content is a file's content, of less than 4 GiB.
	Content []byte
	// Target is where a link leads.
	Target string
	// Major and Minor are a device's numbers.
	Major, Minor uint32
}

// fileTypes are the file type bits of modes (inode(7)).
var fileTypes = map[Kind]uint64{
	File:            cpio.S_IFREG,
	Directory:       cpio.S_IFDIR,
	Link:            cpio.S_IFLNK,
	CharacterDevice: cpio.S_IFCHR,
	BlockDevice:     cpio.S_IFBLK,
}

// maxPath is the longest path that the kernel unpacks, PATH_MAX without the
// closing zero byte.
const maxPath = 4095

// Write writes the archive, not compressed. The entries are sorted by path, and
// every time in it is 1970. A directory that holds an entry must be an entry
// itself: the kernel makes none by itself.
func Write(w io.Writer, entries []Entry) error {
	sorted := slices.Clone(entries)
	slices.SortFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	directories := map[string]bool{"/": true}
	archive := cpio.Newc.Writer(w)
	for i, entry := range sorted {
		if err := check(entry); err != nil {
			return fmt.Errorf("initramfs: %s: %w", entry.Path, err)
		}
		if i > 0 && sorted[i-1].Path == entry.Path {
			return fmt.Errorf("initramfs: %s is there twice", entry.Path)
		}
		// A directory sorts before what is in it.
		if !directories[path.Dir(entry.Path)] {
			return fmt.Errorf("initramfs: %s is in %s, which is no directory of the archive", entry.Path, path.Dir(entry.Path))
		}
		if entry.Kind == Directory {
			directories[entry.Path] = true
		}
		if err := archive.WriteRecord(record(entry, i)); err != nil {
			return fmt.Errorf("initramfs: write %s: %w", entry.Path, err)
		}
	}
	if err := cpio.WriteTrailer(archive); err != nil {
		return fmt.Errorf("initramfs: write the end: %w", err)
	}
	return nil
}

// record returns an entry as the module takes it. The number is its inode's.
func record(entry Entry, number int) cpio.Record {
	info := cpio.Info{
		Name:  strings.TrimPrefix(entry.Path, "/"),
		Ino:   uint64(number) + 1,
		Mode:  fileTypes[entry.Kind] | uint64(entry.Mode),
		UID:   uint64(entry.UID),
		GID:   uint64(entry.GID),
		NLink: 1,
	}
	var content []byte
	switch entry.Kind {
	case Directory:
		info.NLink = 2
	case File:
		content = entry.Content
	case Link:
		content = []byte(entry.Target)
	case CharacterDevice, BlockDevice:
		info.Rmajor, info.Rminor = uint64(entry.Major), uint64(entry.Minor)
	}
	info.FileSize = uint64(len(content))
	return cpio.Record{ReaderAt: bytes.NewReader(content), Info: info}
}

// check returns an error unless the entry can be written as it is.
func check(entry Entry) error {
	name, absolute := strings.CutPrefix(entry.Path, "/")
	if !absolute || !fs.ValidPath(name) || name == "." || strings.ContainsRune(name, 0) || len(entry.Path) > maxPath {
		return errors.New("the path must be absolute, with no empty, . or .. part")
	}
	if name == "TRAILER!!!" {
		return errors.New("this name ends an archive")
	}
	if _, ok := fileTypes[entry.Kind]; !ok {
		return fmt.Errorf("there is no kind %d", entry.Kind)
	}
	isDevice := entry.Kind == CharacterDevice || entry.Kind == BlockDevice
	switch {
	case entry.Mode > 0o7777:
		return fmt.Errorf("the mode %o has more than permissions", entry.Mode)
	case entry.Kind == Link && entry.Mode != 0o777:
		return errors.New("a link has the mode 777")
	case (entry.Kind == Link) != (entry.Target != "") || strings.ContainsRune(entry.Target, 0) || len(entry.Target) > maxPath:
		return errors.New("a link needs a target, and nothing else has one")
	case entry.Kind != File && len(entry.Content) > 0:
		return errors.New("only a file has content")
	case !isDevice && (entry.Major != 0 || entry.Minor != 0):
		return errors.New("only a device has numbers")
	case uint64(len(entry.Content)) > math.MaxUint32:
		return errors.New("the file is larger than 4 GiB")
	}
	return nil
}

// windowSize bounds the memory, in bytes, that the kernel needs to unpack.
const windowSize = 8 << 20

// Compress writes the archive as one zstd frame with a checksum. The bytes are
// the same whatever the number of processors.
func Compress(w io.Writer, archive []byte) error {
	// The encoder cuts its input by the number of its goroutines.
	encoder, err := zstd.NewWriter(w,
		zstd.WithEncoderConcurrency(1),
		zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithWindowSize(windowSize),
		zstd.WithEncoderCRC(true))
	if err != nil {
		return fmt.Errorf("compress the initramfs: %w", err)
	}
	_, err = encoder.Write(archive)
	if err := errors.Join(err, encoder.Close()); err != nil {
		return fmt.Errorf("compress the initramfs: %w", err)
	}
	return nil
}
