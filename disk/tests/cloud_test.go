package tests

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/tests/machine"
)

// released returns the path of the file in the stand-ins' release whose name ends
// like that.
func released(t *testing.T, ending string) string {
	t.Helper()
	folder := built(t, "release")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), ending) {
			return filepath.Join(folder, entry.Name())
		}
	}
	t.Fatalf("the release has no file that ends in %s", ending)
	return ""
}

// digest returns the SHA-256 of a disk image's content.
func digest(t *testing.T, in io.Reader) [sha256.Size]byte {
	t.Helper()
	hash := sha256.New()
	if n, err := io.Copy(hash, in); err != nil || n != disk.Size {
		t.Fatalf("it has %d bytes, %v", n, err)
	}
	return [sha256.Size]byte(hash.Sum(nil))
}

// imageDigest returns the SHA-256 of the stand-ins' disk image.
func imageDigest(t *testing.T, architecture string) [sha256.Size]byte {
	t.Helper()
	image, err := os.Open(built(t, "standin-"+architecture+".img"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	return digest(t, image)
}

func TestGoogleCloud(t *testing.T) {
	for _, architecture := range architectures {
		file, err := os.Open(released(t, "-"+architecture+".gce.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		uncompressed, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(uncompressed)
		header, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		if header.Name != "disk.raw" || header.Format != tar.FormatGNU || header.Typeflag != tar.TypeReg || header.Size%(1<<30) != 0 {
			t.Errorf("the file is %+v", header)
		}
		if digest(t, archive) != imageDigest(t, architecture) {
			t.Errorf("%s: what is packed isn't the disk image", architecture)
		}
		if _, err := archive.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("there is more in the archive: %v", err)
		}
	}
}

// TestAzure unpacks the released file as one does who uploads it, and has QEMU
// read it.
func TestAzure(t *testing.T) {
	for _, architecture := range architectures {
		compressed := released(t, "-"+architecture+".vhd.xz")
		info, err := os.Stat(compressed)
		if err != nil {
			t.Fatal(err)
		}
		packed := filepath.Join(t.TempDir(), "disk.vhd.xz")
		extract(t, packed, compressed, 0, info.Size())
		run(t, "XZ", "xz-utils/usr/bin/xz", "--decompress", packed)
		vhd := strings.TrimSuffix(packed, ".xz")

		var described struct {
			Format string `json:"format"`
			Size   int64  `json:"virtual-size"`
		}
		out := machine.Run(t, "usr/bin/qemu-img", "info", "--output=json", "-f", "vpc", vhd)
		if err := json.Unmarshal([]byte(out), &described); err != nil || described.Format != "vpc" || described.Size != disk.Size {
			t.Errorf("qemu-img info prints %s, %v", out, err)
		}
		out = machine.Run(t, "usr/bin/qemu-img", "compare", "-f", "raw", "-F", "vpc", built(t, "standin-"+architecture+".img"), vhd)
		if out != "Images are identical.\n" {
			t.Errorf("qemu-img compare prints %q", out)
		}
		checkFooter(t, vhd, imageDigest(t, architecture))
	}
}

// checkFooter looks at what QEMU doesn't: whether the disk is fixed, the checksum,
// and the identifier.
func checkFooter(t *testing.T, vhd string, content [sha256.Size]byte) {
	t.Helper()
	file, err := os.Open(vhd)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || info.Size() != disk.Size+512 {
		t.Errorf("it is %v, %v", info, err)
	}
	footer := make([]byte, 512)
	if _, err := file.ReadAt(footer, disk.Size); err != nil {
		t.Fatal(err)
	}
	var sum uint32
	for _, b := range footer {
		sum += uint32(b)
	}
	for _, b := range footer[64:68] {
		sum -= uint32(b)
	}
	be := binary.BigEndian
	if kind, checksum := be.Uint32(footer[60:]), be.Uint32(footer[64:]); kind != 2 || checksum != ^sum || string(footer[:8]) != "conectix" {
		t.Errorf("it is of type %d and has the checksum %#x, want 2 and %#x", kind, checksum, ^sum)
	}
	want := content[:16]
	want[6], want[8] = want[6]&0x0f|0x80, want[8]&0x3f|0x80
	if !bytes.Equal(footer[68:84], want) {
		t.Errorf("the identifier is %x, want %x", footer[68:84], want)
	}
}
