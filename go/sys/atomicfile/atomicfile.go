// Package atomicfile reads and replaces small files as a whole: whoever reads one, or
// loses power while it is written, finds what there was or what there is to be, and
// nothing between.
package atomicfile

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// What the names of temporary files begin and end with.
const (
	temporaryPrefix = "."
	temporarySuffix = ".tmp"
)

// ErrTooLarge says that a file has more bytes than it may have.
var ErrTooLarge = errors.New("the file is too large")

// Read returns the content of a file of at most limit bytes. The error wraps
// fs.ErrNotExist if there is none, and ErrTooLarge if it has more.
func Read(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrTooLarge, path, limit)
	}
	return content, nil
}

// Create writes a file where there is none. Its content outlasts a power cut once
// Create returns; its name does after SyncDirectory. If it fails, there may be a part
// of the file.
func Create(path string, content []byte, mode fs.FileMode) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// Write puts a file in the place of the one there is, if any. Once it returns, the
// file outlasts a power cut; cut short, it leaves the one there was, and perhaps a
// temporary file beside it.
func Write(path string, content []byte, mode fs.FileMode) (err error) {
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	directory, name := filepath.Split(path)
	temporary := filepath.Join(directory, temporaryPrefix+name+"-"+hex.EncodeToString(random[:])+temporarySuffix)
	if err = Create(temporary, content, mode); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		if removeErr := os.Remove(temporary); !errors.Is(removeErr, fs.ErrNotExist) {
			err = errors.Join(err, removeErr)
		}
		return err
	}
	// The file has its name: it isn't removed whatever happens now.
	if err := SyncDirectory(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s was written and may be lost in a power cut: %w", path, err)
	}
	return nil
}

// Rename gives a file or a directory another name in the same directory, which lasts
// once Rename returns.
func Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDirectory(filepath.Dir(to))
}

// RemoveTemporary removes what calls of Write that were cut short have left in a
// directory. It is for whoever alone writes there.
func RemoveTemporary(directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, temporaryPrefix) || !strings.HasSuffix(name, temporarySuffix) {
			continue
		}
		if err := os.Remove(filepath.Join(directory, name)); err != nil {
			return err
		}
	}
	return nil
}

// SyncDirectory makes the names in a directory last. It does nothing on Windows, which
// can't sync a directory opened for reading; NTFS writes renames to its journal in
// order.
func SyncDirectory(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
