// Package initramfs collects files for an archive that a Linux kernel unpacks into
// its first file system. Package go/image/cpio writes it.
package initramfs

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"powercloud.unidatum.com/go/image/cpio"
)

// An Archive is an initramfs that is being written. Names in it are paths, with
// or without a slash before them; what is above a name is added by itself. Of
// two files with the same name it has the later one.
type Archive struct {
	file    *os.File
	entries map[string]cpio.Entry
}

// Create begins an archive in a new file. What is added is kept in memory until
// Close.
func Create(file string) (*Archive, error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("write an initramfs: %w", err)
	}
	return &Archive{file: out, entries: map[string]cpio.Entry{}}, nil
}

// Close writes the archive.
func (a *Archive) Close() error {
	writer := bufio.NewWriter(a.file)
	err := cpio.Write(writer, slices.Collect(maps.Values(a.entries)))
	if err := errors.Join(err, writer.Flush(), a.file.Close()); err != nil {
		return fmt.Errorf("write an initramfs: %w", err)
	}
	return nil
}

// Folder adds a folder, once.
func (a *Archive) Folder(name string) {
	name = absolute(name)
	if _, there := a.entries[name]; there || name == "/" {
		return
	}
	a.Folder(path.Dir(name))
	a.entries[name] = cpio.Entry{Path: name, Kind: cpio.Directory, Mode: 0o755}
}

// Content adds a file with this content, which must not change until Close.
func (a *Archive) Content(name string, mode fs.FileMode, content []byte) {
	name = absolute(name)
	a.Folder(path.Dir(name))
	a.entries[name] = cpio.Entry{Path: name, Mode: uint32(mode.Perm()), Content: content}
}

// absolute returns a name as the archive has it.
func absolute(name string) string { return path.Join("/", name) }

// File adds a copy of a file, with its mode.
func (a *Archive) File(name, source string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return fmt.Errorf("write an initramfs: %w", err)
	}
	info, err := os.Stat(source)
	if err != nil {
		return fmt.Errorf("write an initramfs: %w", err)
	}
	a.Content(name, info.Mode(), content)
	return nil
}

// Tree adds a copy of a file, or of a folder with all that is in it. The source
// may be a link.
func (a *Archive) Tree(name, source string) error {
	source, err := filepath.EvalSymlinks(source)
	if err != nil {
		return fmt.Errorf("write an initramfs: %w", err)
	}
	return filepath.WalkDir(source, func(at string, entry fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("write an initramfs: %w", err)
		}
		relative, err := filepath.Rel(source, at)
		if err != nil {
			return fmt.Errorf("write an initramfs: %w", err)
		}
		target := path.Join(name, filepath.ToSlash(relative))
		if entry.IsDir() {
			a.Folder(target)
			return nil
		}
		return a.File(target, at)
	})
}
