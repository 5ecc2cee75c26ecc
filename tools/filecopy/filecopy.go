// Package filecopy copies files with their permissions.
package filecopy

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Copy copies a regular file, or what a link leads to, to a target that must not
// exist. The copy has the file's permissions, and those of more besides.
func Copy(target, source string, more fs.FileMode) (err error) {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no regular file", source)
	}
	to, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|more)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	_, err = io.Copy(to, from)
	return err
}
