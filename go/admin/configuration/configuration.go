// Package configuration is pcctl's configuration directory: small files that only the
// user can read, each of them replaced as a whole.
package configuration

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/lockedfile"

	"powercloud.unidatum.com/go/sys/atomicfile"
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
	return atomicfile.Read(d.path(name), limit)
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
func (d Directory) Write(name string, content []byte) error {
	if err := d.create(); err != nil {
		return err
	}
	return atomicfile.Write(d.path(name), content, fileMode)
}

// Rename gives a file the name of another, which it replaces, durably.
func (d Directory) Rename(from, to string) error {
	return atomicfile.Rename(d.path(from), d.path(to))
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
