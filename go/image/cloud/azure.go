package cloud

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
)

// Sizes of a disk that Azure takes, in bytes: a multiple of azureUnit ("Prepare
// Linux for imaging in Azure"), and as much as can be uploaded to a managed disk
// (reference of its API, DiskCreationData.UploadSizeBytes).
const (
	azureUnit    = 1 * mebibyte
	azureMinimum = 20 * mebibyte
	azureMaximum = 32 * tebibyte
)

// PackAzure writes a disk image in the format that Azure takes to an empty file: a
// fixed VHD, which is the image and a footer. The image's size must be a multiple
// of 1 MiB, from 20 MiB to 32 TiB. The file becomes sparse. What is written follows
// from the image's content alone.
func PackAzure(out, image *os.File) error {
	if err := packAzure(out, image); err != nil {
		return fmt.Errorf("pack the disk image for Azure: %w", err)
	}
	return nil
}

func packAzure(out, image *os.File) error {
	info, err := out.Stat()
	if err != nil {
		return err
	}
	if info.Size() != 0 {
		return errors.New("the file to write isn't empty")
	}
	in, size, err := content(image)
	if err != nil {
		return err
	}
	if err := checkAzureSize(size); err != nil {
		return err
	}
	digest, err := copySparse(out, in, size)
	if err != nil {
		return err
	}
	footer, err := fixedFooter(size, digest)
	if err != nil {
		return err
	}
	_, err = out.WriteAt(footer, size)
	return err
}

// checkAzureSize returns an error unless Azure takes disks of the size, in bytes.
func checkAzureSize(size int64) error {
	if size%azureUnit != 0 || size < azureMinimum || size > azureMaximum {
		return fmt.Errorf("it has %d bytes, and Azure takes multiples of 1 MiB from 20 MiB to 32 TiB", size)
	}
	return nil
}

// copySparse copies so many bytes to an empty file, leaving holes where there are
// zeros only, and returns their SHA-256.
func copySparse(out io.WriterAt, in io.Reader, size int64) (digest [sha256.Size]byte, err error) {
	hash := sha256.New()
	buffer, zeros := make([]byte, bufferSize), make([]byte, bufferSize)
	for offset := int64(0); offset < size; {
		part := buffer[:min(bufferSize, size-offset)]
		if _, err := io.ReadFull(in, part); err != nil {
			return digest, err
		}
		hash.Write(part)
		if !bytes.Equal(part, zeros[:len(part)]) {
			if _, err := out.WriteAt(part, offset); err != nil {
				return digest, err
			}
		}
		offset += int64(len(part))
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
