// Package cloud packs disk images for Google Cloud and Azure, which take them in
// formats of their own. docs/formats.md, "Release files", describes them.
package cloud

import (
	"io"
	"os"
)

const (
	mebibyte = 1 << 20
	gibibyte = 1 << 30
	tebibyte = 1 << 40
)

// bufferSize is how many bytes of an image are read at a time.
const bufferSize = 1 * mebibyte

// content returns what is in an image, from its beginning on, and its size in
// bytes.
func content(image *os.File) (io.Reader, int64, error) {
	info, err := image.Stat()
	if err != nil {
		return nil, 0, err
	}
	return io.NewSectionReader(image, 0, info.Size()), info.Size(), nil
}
