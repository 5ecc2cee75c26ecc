package root

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Unpack unpacks an archive that [Pack] wrote into the folder, which must be
// empty. Nothing is written outside it, whatever the archive says.
func Unpack(archive, directory string) (err error) {
	file, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("unpack a root: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	plain, err := zstd.NewReader(file)
	if err != nil {
		return fmt.Errorf("unpack the root %s: %w", archive, err)
	}
	defer plain.Close()
	within, err := os.OpenRoot(directory)
	if err != nil {
		return fmt.Errorf("unpack the root %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, within.Close()) }()
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack the root %s: %w", archive, err)
		}
		if err := unpackEntry(within, header, entries); err != nil {
			return fmt.Errorf("unpack the root %s: %w", archive, err)
		}
	}
}

func unpackEntry(within *os.Root, header *tar.Header, content io.Reader) error {
	mode := fs.FileMode(header.Mode & 0o777)
	switch header.Typeflag {
	case tar.TypeDir:
		return within.Mkdir(header.Name, mode)
	case tar.TypeSymlink:
		return within.Symlink(header.Linkname, header.Name)
	case tar.TypeLink:
		return within.Link(header.Linkname, header.Name)
	case tar.TypeReg:
		file, err := within.OpenFile(header.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		return errors.Join(err, file.Close())
	default:
		return fmt.Errorf("%s is no file, folder or link", header.Name)
	}
}
