// Package initramfs writes archives that a Linux kernel unpacks into its first
// file system (Documentation/driver-api/early-userspace/buffer-format.rst).
package initramfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cavaliergopher/cpio"
)

// An Archive is an initramfs that is being written. Names in it are paths, with
// or without a slash before them; what is above a name is added by itself.
type Archive struct {
	file    *os.File
	writer  *cpio.Writer
	folders map[string]bool
}

// Create begins an archive in a new file.
func Create(file string) (*Archive, error) {
	out, err := os.Create(file)
	if err != nil {
		return nil, fmt.Errorf("write an initramfs: %w", err)
	}
	return &Archive{file: out, writer: cpio.NewWriter(out), folders: map[string]bool{".": true, "/": true}}, nil
}

// Close ends the archive. Without it, it is not whole.
func (a *Archive) Close() error {
	if err := errors.Join(a.writer.Close(), a.file.Close()); err != nil {
		return fmt.Errorf("write an initramfs: %w", err)
	}
	return nil
}

// Folder adds a folder, once.
func (a *Archive) Folder(name string) error {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if name == "" || a.folders[name] {
		return nil
	}
	if err := a.Folder(path.Dir(name)); err != nil {
		return err
	}
	a.folders[name] = true
	return a.header(&cpio.Header{Name: name, Mode: cpio.TypeDir | 0o755, Links: 2})
}

// Content adds a file with this content.
func (a *Archive) Content(name string, mode fs.FileMode, content []byte) error {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if err := a.Folder(path.Dir(name)); err != nil {
		return err
	}
	header := &cpio.Header{Name: name, Mode: cpio.TypeReg | cpio.FileMode(mode.Perm()), Size: int64(len(content)), Links: 1}
	if err := a.header(header); err != nil {
		return err
	}
	if _, err := a.writer.Write(content); err != nil {
		return fmt.Errorf("write an initramfs: %s: %w", name, err)
	}
	return nil
}

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
	return a.Content(name, info.Mode(), content)
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
			return a.Folder(target)
		}
		return a.File(target, at)
	})
}

func (a *Archive) header(h *cpio.Header) error {
	if err := a.writer.WriteHeader(h); err != nil {
		return fmt.Errorf("write an initramfs: %s: %w", h.Name, err)
	}
	return nil
}
