package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Target says what a path that is to be written to is.
type Target int

const (
	// NewFile is a regular file, or nothing yet: it is written by replacing it.
	NewFile Target = iota
	// Directory is a directory.
	Directory
	// Special is a device, a pipe, or a name by which the system reaches an
	// open file: it must be written into, never replaced.
	Special
)

// Classify looks at a path that a user named as the file to write. For NewFile
// it also returns the path of the file to replace: where path leads to when it
// is a symbolic link, which thus stays a link.
func Classify(path string) (target Target, file string, err error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return 0, "", err
	}
	// Some of these are links to regular files, such as /dev/stdout when
	// output goes to one.
	for _, special := range []string{"/dev/", "/proc/"} {
		if strings.HasPrefix(filepath.ToSlash(absolute), special) && !isBelow(absolute, "/dev/shm") {
			return Special, path, nil
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NewFile, path, nil
	case err != nil:
		return 0, "", err
	case info.IsDir():
		return Directory, path, nil
	case !info.Mode().IsRegular():
		return Special, path, nil
	}
	file, err = filepath.EvalSymlinks(path)
	return NewFile, file, err
}

// isBelow tells whether a path leads below a directory.
func isBelow(path, directory string) bool {
	return strings.HasPrefix(path, directory+string(filepath.Separator))
}
