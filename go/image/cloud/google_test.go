package cloud

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"testing"
)

// TestPackGoogle reads with the standard library what was compressed by another.
func TestPackGoogle(t *testing.T) {
	image := create(t, gibibyte)
	var packed, again bytes.Buffer
	for _, out := range []io.Writer{&packed, &again} {
		if err := PackGoogle(out, image); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(packed.Bytes(), again.Bytes()) {
		t.Error("the same image gave other bytes")
	}
	if packed.Len() > 2*mebibyte {
		t.Errorf("an image of zeros takes %d bytes", packed.Len())
	}
	// RFC 1952: deflate, no flags, no time, no system.
	if header := packed.Bytes()[:10]; !bytes.Equal(header, []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}) {
		t.Errorf("the header of gzip is %x", header)
	}
	uncompressed, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	var first bytes.Buffer
	archive := tar.NewReader(io.TeeReader(uncompressed, &limited{&first, 512}))
	header, err := archive.Next()
	if err != nil {
		t.Fatal(err)
	}
	if header.Name != "disk.raw" || header.Typeflag != tar.TypeReg || header.Mode != 0o644 || header.Uid != 0 || header.Gid != 0 || header.ModTime.Unix() != 0 {
		t.Errorf("the file is %+v", header)
	}
	// The old format has this where POSIX's has "ustar\x0000", and the size in octal.
	if block := first.Bytes(); string(block[257:265]) != "ustar  \x00" || string(block[124:136]) != "10000000000\x00" || block[156] != '0' {
		t.Errorf("the header of tar is %q", block)
	}
	got, size := digest(t, archive)
	if want, _ := digest(t, whole(t, image)); size != gibibyte || got != want {
		t.Errorf("the file has %d bytes, or other content", size)
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("there is more in the archive: %v", err)
	}
}

// limited passes on only so many bytes.
type limited struct {
	out  io.Writer
	left int
}

func (l *limited) Write(content []byte) (int, error) {
	n := min(l.left, len(content))
	l.left -= n
	if _, err := l.out.Write(content[:n]); err != nil {
		return 0, err
	}
	return len(content), nil
}
