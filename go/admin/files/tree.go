package files

import (
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
)

// Entry is a regular file in a tree.
type Entry struct {
	// Name is the file's path below the tree's top, with slashes.
	Name string
	// Path opens the file.
	Path string
	// Info describes it.
	Info fs.FileInfo
}

// Tree is a directory whose files are to be stored.
type Tree struct {
	// Top is the directory.
	Top string
	// Omit are directories that are left out wherever they are found.
	Omit []fs.FileInfo
	// Skipped is told of what isn't stored although it could be looked at: symbolic
	// links, devices, pipes, sockets, and the directories to omit.
	Skipped func(path, why string)
	// Failed is told of what couldn't be looked at.
	Failed func(path string, err error)
}

// Files returns the regular files of the tree in lexical order. Symbolic links
// aren't followed: they may lead out of the tree, or round in it.
func (t Tree) Files() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		top := t.Top
		// WalkDir doesn't enter a link, but this one was named by the user.
		if info, err := os.Lstat(top); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			if resolved, err := filepath.EvalSymlinks(top); err == nil {
				top = resolved
			}
		}
		t.Top = top
		// The callback handles every error itself.
		_ = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				t.Failed(path, err)
				if d != nil && d.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			entry, ok, err := t.visit(path, d)
			if err != nil {
				return err
			}
			if ok && !yield(entry) {
				return fs.SkipAll
			}
			return nil
		})
	}
}

// visit looks at one entry of a directory. The error is one of those that
// steer WalkDir.
func (t Tree) visit(path string, d fs.DirEntry) (entry Entry, ok bool, err error) {
	if d.Type()&^fs.ModeDir != 0 {
		t.Skipped(path, describe(d.Type()))
		return Entry{}, false, nil
	}
	info, err := d.Info()
	if err != nil {
		t.Failed(path, err)
		return Entry{}, false, nil
	}
	if d.IsDir() {
		for _, omit := range t.Omit {
			if os.SameFile(info, omit) {
				t.Skipped(path, "a storage location of the cluster")
				return Entry{}, false, fs.SkipDir
			}
		}
		return Entry{}, false, nil
	}
	relative, err := filepath.Rel(t.Top, path)
	if err != nil {
		t.Failed(path, err)
		return Entry{}, false, nil
	}
	return Entry{Name: filepath.ToSlash(relative), Path: path, Info: info}, true, nil
}

// describe says what an entry that isn't a regular file is.
func describe(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "a symbolic link"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	}
	return "no regular file"
}

// OpenRegular opens a file of a tree for reading, provided that it is still a
// regular file: a link or a pipe may have taken its place since.
func OpenRegular(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|openPlain, 0)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file any more", path)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
