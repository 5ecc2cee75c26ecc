package disk

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf16"

	"github.com/diskfs/go-diskfs/backend/file"
	"github.com/diskfs/go-diskfs/filesystem/fat32"
)

// system stands in for an EFI file. It ends inside a cluster.
var system = bytes.Repeat([]byte("PowerCloud"), 300_001)

// create writes a disk image to a file and returns its name.
func create(t *testing.T, architecture string) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", FileTime)
	name := filepath.Join(t.TempDir(), "disk.img")
	image, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	if err := Write(image, architecture, system); err != nil {
		t.Fatal(err)
	}
	return name
}

// digest returns the SHA-256 of a file.
func digest(t *testing.T, name string) string {
	t.Helper()
	image, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	hash := sha256.New()
	if n, err := io.Copy(hash, image); err != nil || n != Size {
		t.Fatalf("%d bytes, %v", n, err)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

func TestWrittenTwice(t *testing.T) {
	first := create(t, "amd64")
	if digest(t, first) != digest(t, create(t, "amd64")) {
		t.Error("the same system gave other bytes")
	}
	if digest(t, first) == digest(t, create(t, "arm64")) {
		t.Error("another architecture gave the same bytes")
	}
}

func TestSparse(t *testing.T) {
	var status syscall.Stat_t
	if err := syscall.Stat(create(t, "amd64"), &status); err != nil {
		t.Fatal(err)
	}
	// Two file allocation tables, the system, and little else.
	if used := status.Blocks * 512; used > int64(len(system))+6*mebibyte {
		t.Errorf("the file takes %d bytes of the disk", used)
	}
}

// bytesAt reads a part of a file.
func bytesAt(t *testing.T, name string, offset, size int64) []byte {
	t.Helper()
	image, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	part := make([]byte, size)
	if _, err := image.ReadAt(part, offset); err != nil {
		t.Fatal(err)
	}
	return part
}

// TestPartitions reads the partition table by the UEFI specification 2.10, section
// 5, and not with the module that wrote it.
func TestPartitions(t *testing.T) {
	name := create(t, "amd64")
	le := binary.LittleEndian
	mbr := bytesAt(t, name, 0, SectorSize)
	wantEntry := []byte{0, 0, 2, 0, 0xee, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0xff, 0xff, 0x1f, 0}
	if !bytes.Equal(mbr[446:462], wantEntry) || mbr[510] != 0x55 || mbr[511] != 0xaa || !bytes.Equal(mbr[:446], make([]byte, 446)) || !bytes.Equal(mbr[462:510], make([]byte, 48)) {
		t.Errorf("the protective MBR is %x", mbr)
	}
	const last = Size/SectorSize - 1
	table := checkTable(t, name, 1, last, 2)
	if copied := checkTable(t, name, last, 1, last-32); !bytes.Equal(table, copied) {
		t.Error("the backup differs")
	}
	for i, want := range []struct {
		kind, name  string
		first, last uint64
	}{
		{"28732ac11ff8d211ba4b00a0c93ec93b", SystemName, 2048, 2048 + 256*2048 - 1},
		{"8a859ac759247f4db23589112a276786", StateName, 257 * 2048, 1023*2048 - 1},
	} {
		entry := table[i*128 : (i+1)*128]
		if got := hex.EncodeToString(entry[:16]); got != want.kind {
			t.Errorf("partition %d has the type %s", i+1, got)
		}
		if version := entry[16+7] >> 4; version != 8 || entry[16+8]>>6 != 2 {
			t.Errorf("partition %d has the GUID %x", i+1, entry[16:32])
		}
		if first, last := le.Uint64(entry[32:]), le.Uint64(entry[40:]); first != want.first || last != want.last {
			t.Errorf("partition %d is %d to %d", i+1, first, last)
		}
		var units []uint16
		for at := 56; at < 128 && le.Uint16(entry[at:]) != 0; at += 2 {
			units = append(units, le.Uint16(entry[at:]))
		}
		if got := string(utf16.Decode(units)); got != want.name {
			t.Errorf("partition %d is named %q", i+1, got)
		}
	}
	if !bytes.Equal(table[256:], make([]byte, len(table)-256)) {
		t.Error("there are more than two partitions")
	}
}

// checkTable checks the header of a partition table in a sector, and returns its
// entries.
func checkTable(t *testing.T, name string, own, other, entries int64) []byte {
	t.Helper()
	le := binary.LittleEndian
	header := bytesAt(t, name, own*SectorSize, SectorSize)
	sum := le.Uint32(header[16:])
	le.PutUint32(header[16:], 0)
	const last = Size/SectorSize - 1
	if string(header[:8]) != "EFI PART" || le.Uint32(header[8:]) != 0x10000 || le.Uint32(header[12:]) != 92 || sum != crc32.ChecksumIEEE(header[:92]) {
		t.Errorf("the header in sector %d is %x", own, header[:92])
	}
	if le.Uint64(header[24:]) != uint64(own) || le.Uint64(header[32:]) != uint64(other) || le.Uint64(header[40:]) != 34 || le.Uint64(header[48:]) != last-33 || le.Uint64(header[72:]) != uint64(entries) {
		t.Errorf("the header in sector %d points elsewhere: %x", own, header[:92])
	}
	table := bytesAt(t, name, entries*SectorSize, 128*128)
	if le.Uint32(header[80:]) != 128 || le.Uint32(header[84:]) != 128 || le.Uint32(header[88:]) != crc32.ChecksumIEEE(table) {
		t.Errorf("the header in sector %d has other entries: %x", own, header[:92])
	}
	return table
}

func TestStateIsZero(t *testing.T) {
	image, err := os.Open(create(t, "amd64"))
	if err != nil {
		t.Fatal(err)
	}
	defer image.Close()
	state := io.NewSectionReader(image, StateOffset, StateSize)
	buffer, zeros := make([]byte, 1<<20), make([]byte, 1<<20)
	for {
		n, err := state.Read(buffer)
		if !bytes.Equal(buffer[:n], zeros[:n]) {
			t.Fatal("the state partition isn't zero")
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSystem(t *testing.T) {
	for architecture, path := range map[string]string{"amd64": "/EFI/BOOT/BOOTX64.EFI", "arm64": "/EFI/BOOT/BOOTAA64.EFI"} {
		image, err := os.Open(create(t, architecture))
		if err != nil {
			t.Fatal(err)
		}
		defer image.Close()
		volume, err := fat32.Read(file.New(image, true), SystemSize, SystemOffset, SectorSize)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := volume.ReadFile(path); err != nil || !bytes.Equal(got, system) {
			t.Errorf("%s: %s has %d bytes, %v", architecture, path, len(got), err)
		}
		if label := strings.TrimRight(volume.Label(), " "); label != VolumeLabel {
			t.Errorf("the label is %q", label)
		}
	}
}

func TestRefused(t *testing.T) {
	for want, test := range map[string]struct {
		architecture, epoch string
		system              []byte
		content             string
	}{
		`the architecture "riscv64"`: {"riscv64", FileTime, system, ""},
		"the file isn't empty":       {"amd64", FileTime, system, "x"},
		"the EFI file is empty":      {"amd64", FileTime, nil, ""},
		"SOURCE_DATE_EPOCH must be":  {"amd64", "", system, ""},
		"no space left":              {"amd64", FileTime, make([]byte, SystemSize), ""},
	} {
		t.Setenv("SOURCE_DATE_EPOCH", test.epoch)
		image, err := os.Create(filepath.Join(t.TempDir(), "disk.img"))
		if err != nil {
			t.Fatal(err)
		}
		defer image.Close()
		if _, err := image.WriteString(test.content); err != nil {
			t.Fatal(err)
		}
		if err := Write(image, test.architecture, test.system); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSectors looks at what the FAT module leaves undone.
func TestSectors(t *testing.T) {
	name := create(t, "amd64")
	le := binary.LittleEndian
	for _, first := range []int64{0, 6} {
		boot := bytesAt(t, name, SystemOffset+first*SectorSize, 2*SectorSize)
		if hidden, number := le.Uint32(boot[28:]), le.Uint32(boot[67:]); hidden != 2048 || number != 0x50434c44 {
			t.Errorf("the boot sector %d has %d hidden sectors and the serial number %#x", first, hidden, number)
		}
		used := uint32(3) + uint32(len(system)+511)/512 // the root, two folders, the file
		if free, next := le.Uint32(boot[512+488:]), le.Uint32(boot[512+492:]); free != 516190-used || next != 2+used {
			t.Errorf("the sector %d has %d free clusters, the first %d", first+1, free, next)
		}
	}
}
