package dm

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestSizes compares the sizes with those of the kernel's structures.
func TestSizes(t *testing.T) {
	if got := binary.Size(unix.DmIoctl{}); got != unix.SizeofDmIoctl || uintptr(got) != unsafe.Sizeof(unix.DmIoctl{}) {
		t.Errorf("the header has %d bytes, not %d", got, unix.SizeofDmIoctl)
	}
	if got := binary.Size(unix.DmTargetSpec{}); got != unix.SizeofDmTargetSpec {
		t.Errorf("a target has %d bytes, not %d", got, unix.SizeofDmTargetSpec)
	}
}

var example = []Target{
	{0, 8, "linear", "/dev/vda2 2048"},
	{8, 1 << 40, "err", ""},
	{1<<40 + 8, 16, "crypt", strings.Repeat("x", maxParameters)},
}

func TestEncode(t *testing.T) {
	encoded, err := encodeTable(example)
	if err != nil {
		t.Fatal(err)
	}
	if len(encoded)%8 != 0 {
		t.Errorf("%d bytes are not aligned", len(encoded))
	}
	// The kernel's own offsets count from the beginning: make them do so.
	next := 0
	for at := 0; at < len(encoded); at = next {
		next = at + int(binary.NativeEndian.Uint32(encoded[at+20:]))
		binary.NativeEndian.PutUint32(encoded[at+20:], uint32(next))
	}
	decoded, err := decodeTable(encoded, uint32(len(example)))
	if err != nil || !reflect.DeepEqual(decoded, example) {
		t.Errorf("%+v, %v", decoded, err)
	}
	for cut := range len(encoded) {
		if cut < len(encoded)-8 {
			if _, err := decodeTable(encoded[:cut], uint32(len(example))); err == nil {
				t.Fatalf("the first %d bytes of %d could be read", cut, len(encoded))
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, table := range [][]Target{
		nil,
		{{Length: 8, Type: "0123456789abcdef"}},
		{{Length: 8, Type: "linear", Parameters: "a\x00b"}},
		{{Length: 8, Type: "linear", Parameters: strings.Repeat("x", maxParameters+1)}},
	} {
		if _, err := encodeTable(table); err == nil {
			t.Errorf("%+v was encoded", table)
		}
	}
	m := &Mapper{}
	for _, name := range []string{"", "a/b", "a\x00", strings.Repeat("x", 128)} {
		if err := m.Create(name); err == nil || !strings.Contains(err.Error(), "can't have this name") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
