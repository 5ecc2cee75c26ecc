package cloud

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"syscall"
	"testing"
)

// pack packs an image for Azure and returns the file.
func pack(t *testing.T, image *os.File) *os.File {
	t.Helper()
	out := empty(t)
	if err := PackAzure(out, image); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestPackAzure(t *testing.T) {
	const size = 200 * mebibyte
	image := create(t, size)
	out := pack(t, image)
	if info, err := out.Stat(); err != nil || info.Size() != size+512 {
		t.Fatalf("it is %v, %v", info, err)
	}
	wantDigest, _ := digest(t, whole(t, image))
	if got, _ := digest(t, io.NewSectionReader(out, 0, size)); got != wantDigest {
		t.Error("it has other content than the image")
	}
	var status syscall.Stat_t
	if err := syscall.Fstat(int(out.Fd()), &status); err != nil {
		t.Fatal(err)
	}
	if used := status.Blocks * 512; used > 8*mebibyte {
		t.Errorf("it takes %d bytes of the disk", used)
	}
	footer := make([]byte, 512)
	if _, err := out.ReadAt(footer, size); err != nil {
		t.Fatal(err)
	}
	checkFooter(t, footer, size, [4]byte{825 >> 8, 825 & 0xff, 16, 31})
	id := wantDigest[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	if !bytes.Equal(footer[68:84], id) {
		t.Errorf("the identifier is %x, want %x", footer[68:84], id)
	}
}

// checkFooter compares a footer, but for the identifier, with the specification's
// tables, by offset.
func checkFooter(t *testing.T, footer []byte, size uint64, geometry [4]byte) {
	t.Helper()
	wantSize := binary.BigEndian.AppendUint64(nil, size)
	for _, field := range []struct {
		name   string
		offset int
		want   []byte
	}{
		{"cookie", 0, []byte("conectix")},
		{"features", 8, []byte{0, 0, 0, 2}},
		{"file format version", 12, []byte{0, 1, 0, 0}},
		{"data offset", 16, bytes.Repeat([]byte{0xff}, 8)},
		{"time stamp", 24, make([]byte, 4)},
		{"creator application", 28, []byte("win ")},
		{"creator version", 32, []byte{0, 10, 0, 0}},
		{"creator host", 36, []byte{0x57, 0x69, 0x32, 0x6b}},
		{"original size", 40, wantSize},
		{"current size", 48, wantSize},
		{"disk geometry", 56, geometry[:]},
		{"disk type", 60, []byte{0, 0, 0, 2}},
		{"saved state and what is reserved", 84, make([]byte, 428)},
	} {
		if got := footer[field.offset:][:len(field.want)]; !bytes.Equal(got, field.want) {
			t.Errorf("%s is %x, want %x", field.name, got, field.want)
		}
	}
	var sum uint32
	for i, b := range footer {
		if i < 64 || i >= 68 {
			sum += uint32(b)
		}
	}
	if got := binary.BigEndian.Uint32(footer[64:]); sum+got != 1<<32-1 {
		t.Errorf("the checksum is %#x, of a sum of %#x", got, sum)
	}
}

func TestPackedTwice(t *testing.T) {
	image := create(t, 20*mebibyte)
	first, err := io.ReadAll(whole(t, pack(t, image)))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := io.ReadAll(whole(t, pack(t, image))); err != nil || !bytes.Equal(first, second) {
		t.Errorf("the same image gave other bytes, %v", err)
	}
	// Content that is shifted, and no other, makes another disk.
	if _, err := image.WriteAt([]byte("\x00first"), 0); err != nil {
		t.Fatal(err)
	}
	other, err := io.ReadAll(whole(t, pack(t, image)))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(other[len(other)-512:][68:84], first[len(first)-512:][68:84]) {
		t.Error("another image has the same identifier")
	}
}

// TestGeometry has values that were worked out on paper by the specification's
// appendix, on both sides of each of its limits.
func TestGeometry(t *testing.T) {
	for sectors, want := range map[int64]vhdGeometry{
		20 * 2048:               {602, 4, 17},
		4 * 1024 * 17:           {140, 16, 31}, // one more than four heads reach
		4*1024*17 - 1:           {1023, 4, 17},
		100 * 2048:              {1003, 12, 17},
		16 * 1024 * 17:          {561, 16, 31},
		16*1024*17 - 1:          {1023, 16, 17},
		200 * 2048:              {825, 16, 31},
		16 * 1024 * 31:          {503, 16, 63},
		16*1024*31 - 1:          {1023, 16, 31},
		256 * 2048:              {520, 16, 63},
		1024 * 2048:             {2080, 16, 63},
		65535 * 16 * 63:         {16191, 16, 255},
		65535*16*63 - 1:         {65534, 16, 63},
		32 * 1024 * 2048:        {16448, 16, 255},
		65535 * 16 * 255:        {65535, 16, 255},
		2048 * 1024 * 2048:      {65535, 16, 255},
		32 * 1024 * 1024 * 2048: {65535, 16, 255},
	} {
		if got := geometry(sectors); got != want {
			t.Errorf("%d sectors have %v, want %v", sectors, got, want)
		}
	}
}
