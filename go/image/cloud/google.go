package cloud

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/gzip"
)

// GoogleName is the name that the disk image has in the archive.
const GoogleName = "disk.raw"

// PackGoogle writes a disk image in the format that Compute Engine imports (Google
// Cloud, "Manually import boot disks", section "Requirements for the image file"):
// a tar archive of GNU's old format, compressed with gzip, whose only file is the
// image. The image's size must be a multiple of 1 GiB. What is written follows from
// the image's content alone.
func PackGoogle(out io.Writer, image *os.File) error {
	if err := packGoogle(out, image); err != nil {
		return fmt.Errorf("pack the disk image for Google Cloud: %w", err)
	}
	return nil
}

func packGoogle(out io.Writer, image *os.File) error {
	epoch := time.Unix(0, 0)
	in, size, err := content(image)
	if err != nil {
		return err
	}
	if err := checkGoogleSize(size); err != nil {
		return err
	}
	// The standard library's takes seven times as long, for as many bytes.
	compressed, err := gzip.NewWriterLevel(out, gzip.DefaultCompression)
	if err != nil {
		return err
	}
	compressed.ModTime = epoch // which stands for none
	archive := tar.NewWriter(compressed)
	// A program that knows GNU's old format can read what Go calls GNU's, as long
	// as names are short.
	if err := archive.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg,
		Name:     GoogleName,
		Size:     size,
		Mode:     0o644,
		ModTime:  epoch,
		Format:   tar.FormatGNU,
	}); err != nil {
		return err
	}
	// Without the methods by which both would choose how much to copy at a time.
	if _, err := io.CopyBuffer(struct{ io.Writer }{archive}, struct{ io.Reader }{in}, make([]byte, bufferSize)); err != nil {
		return err
	}
	return errors.Join(archive.Close(), compressed.Close())
}

// checkGoogleSize returns an error unless Compute Engine imports images of the
// size, in bytes.
func checkGoogleSize(size int64) error {
	if size == 0 || size%gibibyte != 0 {
		return fmt.Errorf("it has %d bytes, and Google Cloud takes multiples of 1 GiB", size)
	}
	return nil
}
