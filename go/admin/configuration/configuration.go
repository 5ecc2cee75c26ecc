// Package configuration is pcctl's configuration directory: small files that only the
// user can read, each of them replaced as a whole.
package configuration

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

	"github.com/rogpeppe/go-internal/lockedfile"
)

// The modes of the directory and of the files in it.
const (
	directoryMode = 0o700
	fileMode      = 0o600
)

// lockName is the file that is locked while several are changed together, or one is
// read, changed and written.
const lockName = ".lock"

// ErrNone says that there is no directory to keep anything in.
var ErrNone = errors.New("there is no configuration directory; set POWERCLOUD_CONFIG to one")

// Directory is the path of a configuration directory, which needn't exist; "" is
// none.
type Directory string

// Read returns the content of a file of at most limit bytes. The error wraps
// fs.ErrNotExist if there is none.
func (d Directory) Read(name string, limit int64) ([]byte, error) {
	if d == "" {
		return nil, ErrNone
	}
	file, err := os.Open(d.path(name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", d.path(name), limit)
	}
	return content, nil
}

// Has reports whether there is a file.
func (d Directory) Has(name string) (bool, error) {
	if d == "" {
		return false, nil
	}
	_, err := os.Lstat(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Write puts a file in the place of the one there is, if any, with mode 0600. Once it
// returns, the file outlasts a power cut; cut short, it leaves the one there was. The
// directory is made with mode 0700 if it doesn't exist.
func (d Directory) Write(name string, content []byte) (err error) {
	if err := d.create(); err != nil {
		return err
	}
	var random [8]byte
	if _, err := rand.Read(random[:]); err != nil {
		return err
	}
	temporary := d.path("." + name + "-" + hex.EncodeToString(random[:]) + ".tmp")
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temporary))
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = os.Rename(temporary, d.path(name)); err != nil {
		return err
	}
	// The file has its name: it isn't removed whatever happens now.
	if syncErr := d.sync(); syncErr != nil {
		return fmt.Errorf("%s was written and may be lost in a power cut: %w", d.path(name), syncErr)
	}
	return nil
}

// Rename gives a file the name of another, which it replaces, durably.
func (d Directory) Rename(from, to string) error {
	if err := os.Rename(d.path(from), d.path(to)); err != nil {
		return err
	}
	return d.sync()
}

// Lock waits until no other pcctl has the directory locked, and locks it.
func (d Directory) Lock() (unlock func(), err error) {
	if err := d.create(); err != nil {
		return nil, err
	}
	path := d.path(lockName)
	// With the mode of the others, which package lockedfile has no say in.
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, fileMode)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	unlock, err = lockedfile.MutexAt(path).Lock()
	if err != nil {
		return nil, fmt.Errorf("locking the configuration directory: %w", err)
	}
	return unlock, nil
}

func (d Directory) path(name string) string { return filepath.Join(string(d), name) }

func (d Directory) create() error {
	if d == "" {
		return ErrNone
	}
	return os.MkdirAll(string(d), directoryMode)
}

// sync makes renames durable. It does nothing on Windows, which can't sync a directory
// opened for reading; NTFS writes renames to its journal in order.
func (d Directory) sync() error {
	if runtime.GOOS == "windows" {
		return nil
	}
	opened, err := os.Open(string(d))
	if err != nil {
		return err
	}
	return errors.Join(opened.Sync(), opened.Close())
}
