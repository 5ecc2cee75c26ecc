package files

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Replacement is a file that is being written under a temporary name in the
// directory of the file that it will replace.
type Replacement struct {
	// File takes the content.
	File *os.File

	root        *os.Root
	temp, final string
	// replaces says that there was a file before.
	replaces bool
}

// Replace starts to write a file at a path below root, with mode 0600.
// Whatever is at the path stays until Commit. Abort or Commit must follow.
func Replace(root *os.Root, path string) (*Replacement, error) {
	_, err := root.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// A name that is too long, say: better found out before than after all
		// of the content is there.
		return nil, withoutPath(err)
	}
	replaces := err == nil
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, err
	}
	temp := filepath.Join(filepath.Dir(path), ".pcctl-"+hex.EncodeToString(random[:])+".tmp")
	file, err := root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Replacement{File: file, root: root, temp: temp, final: path, replaces: replaces}, nil
}

// withoutPath takes the path out of an error of package os, for callers that name
// the file.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// Commit gives the file a modification time, unless it is the zero time, and
// puts it in its place. When that fails the file is removed.
//
// A file that takes another's place is synced first, or a power cut could leave
// neither. A new one is not: until the system has written it out, the store
// still has it.
func (r *Replacement) Commit(modified time.Time) error {
	var err error
	if r.replaces {
		err = r.File.Sync()
	}
	if err == nil && !modified.IsZero() {
		err = r.root.Chtimes(r.temp, time.Time{}, modified)
	}
	if closeErr := r.File.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = r.root.Rename(r.temp, r.final)
	}
	if err != nil {
		return errors.Join(err, r.remove())
	}
	return nil
}

// Abort removes the file. What is at the final path stays.
func (r *Replacement) Abort() error {
	// What was written is of no use any more, nor is an error about it.
	_ = r.File.Close()
	return r.remove()
}

func (r *Replacement) remove() error {
	if err := r.root.Remove(r.temp); err != nil {
		return fmt.Errorf("removing the temporary file: %w", err)
	}
	return nil
}
