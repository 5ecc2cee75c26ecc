package cpio

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// entries are one of each kind.
func entries() []Entry {
	return []Entry{
		{Path: "/init", Mode: 0o755, Content: []byte("program")},
		{Path: "/dev", Kind: Directory, Mode: 0o755},
		{Path: "/dev/console", Kind: CharacterDevice, Mode: 0o600, Major: 5, Minor: 1},
		{Path: "/dev/loop0", Kind: BlockDevice, Mode: 0o660, GID: 6, Major: 7},
		{Path: "/sbin", Kind: Directory, Mode: 0o750, UID: 1, GID: 2},
		{Path: "/sbin/init", Kind: Link, Mode: 0o777, Target: "/init"},
		{Path: "/empty", Mode: 0o4755},
	}
}

// write returns the archive of the entries.
func write(t *testing.T, entries []Entry) []byte {
	t.Helper()
	var archive bytes.Buffer
	if err := Write(&archive, entries); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

func TestWrite(t *testing.T) {
	archive := write(t, entries())
	want := []string{
		"dev 1 40755 0 0 2 0 0:0 ",
		"dev/console 2 20600 0 0 1 0 5:1 ",
		"dev/loop0 3 60660 0 6 1 0 7:0 ",
		"empty 4 104755 0 0 1 0 0:0 ",
		"init 5 100755 0 0 1 0 0:0 program",
		"sbin 6 40750 1 2 2 0 0:0 ",
		"sbin/init 7 120777 0 0 1 0 0:0 /init",
		"TRAILER!!! 0 0 0 0 0 0 0:0 ",
	}
	if got := list(t, archive); !slices.Equal(got, want) {
		t.Errorf("it has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	reversed := entries()
	slices.Reverse(reversed)
	if !bytes.Equal(archive, write(t, reversed)) {
		t.Error("another order of the entries gave other bytes")
	}
}

// TestGolden compares an archive with the bytes that it had when this was written,
// and that cpio(1) listed.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/initramfs-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.Join(strings.Fields(string(golden)), ""))
	if err != nil {
		t.Fatal(err)
	}
	if got := write(t, entries()); !bytes.Equal(got, want) {
		t.Errorf("the archive is %x", got)
	}
}

// list reads an archive as the kernel's init/initramfs.c does: thirteen numbers of
// eight hexadecimal digits, a name, and content, each part ending at a multiple of
// four.
func list(t *testing.T, archive []byte) []string {
	t.Helper()
	var lines []string
	for at := 0; at < len(archive); {
		if string(archive[at:at+6]) != "070701" {
			t.Fatalf("byte %d begins with %q", at, archive[at:at+6])
		}
		var fields [13]uint64
		for i := range fields {
			n, err := strconv.ParseUint(string(archive[at+6+8*i:at+14+8*i]), 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			fields[i] = n
		}
		name, end := at+110, at+110+int(fields[11])
		content := (end + 3) &^ 3
		if archive[end-1] != 0 || fields[12] != 0 {
			t.Errorf("a name doesn't end with a zero byte, or there is a checksum")
		}
		// inode, mode, owner, group, links, time, device, content
		lines = append(lines, fmt.Sprintf("%s %d %o %d %d %d %d %d:%d %s", archive[name:end-1],
			fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[9], fields[10], archive[content:content+int(fields[6])]))
		at = (content + int(fields[6]) + 3) &^ 3
	}
	return lines
}

func TestWriteRefused(t *testing.T) {
	for want, entry := range map[string]Entry{
		"init: the path must be absolute":     {Path: "init"},
		"/: the path must be absolute":        {Path: "/", Kind: Directory},
		"/a/../b: the path must be absolute":  {Path: "/a/../b"},
		"/a/: the path must be absolute":      {Path: "/a/", Kind: Directory},
		"ends an archive":                     {Path: "/TRAILER!!!"},
		"/init is there twice":                {Path: "/init"},
		"/x/a is in /x, which is no director": {Path: "/x/a"},
		"/init/a is in /init, which is no di": {Path: "/init/a"},
		"/a: the mode 10000 has more":         {Path: "/a", Mode: 0o10000},
		"/a: a link has the mode 777":         {Path: "/a", Kind: Link, Target: "b"},
		"/a: a link needs a target":           {Path: "/a", Kind: Link, Mode: 0o777},
		"/b: a link needs a target, and noth": {Path: "/b", Target: "b"},
		"/a: only a file has content":         {Path: "/a", Kind: Directory, Content: []byte("a")},
		"/a: only a device has numbers":       {Path: "/a", Major: 1},
		"/a: there is no kind 9":              {Path: "/a", Kind: 9},
	} {
		err := Write(io.Discard, append(entries(), entry))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestCompress(t *testing.T) {
	// More than one block, some of it compressible, with nothing random.
	archive := make([]byte, 5<<20)
	for i, state := 0, uint32(1); i < len(archive); i++ {
		state = state*1664525 + 1013904223
		if i%4096 < 1024 {
			archive[i] = byte(state >> 24)
		}
	}
	compress := func() []byte {
		var out bytes.Buffer
		if err := Compress(&out, archive); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	before := runtime.GOMAXPROCS(1)
	one := compress()
	runtime.GOMAXPROCS(8)
	eight := compress()
	runtime.GOMAXPROCS(before)
	if !bytes.Equal(one, eight) {
		t.Error("another number of processors gave other bytes")
	}
	// The kernel allocates the window that the frame asks for, and takes one
	// frame only.
	var header zstd.Header
	if err := header.Decode(one); err != nil {
		t.Fatal(err)
	}
	if header.WindowSize > windowSize || !header.HasCheckSum || header.Skippable {
		t.Errorf("the frame is %+v", header)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	if got, err := reader.DecodeAll(one, nil); err != nil || !bytes.Equal(got, archive) {
		t.Errorf("it unpacks to %d bytes, %v", len(got), err)
	}
}
