package modules

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// module is a file in ELF's format that has nothing but a module's information.
func module(t *testing.T, information string) []byte {
	t.Helper()
	names := "\x00.modinfo\x00.shstrtab\x00"
	const header, section = 64, 64
	var b bytes.Buffer
	write := func(values ...any) {
		for _, value := range values {
			if err := binary.Write(&b, binary.LittleEndian, value); err != nil {
				t.Fatal(err)
			}
		}
	}
	at := uint64(header)
	tables := at + uint64(len(information)+len(names))
	write([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9), uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), tables,
		uint32(0), uint16(header), uint16(0), uint16(0), uint16(section), uint16(3), uint16(2))
	write([]byte(information), []byte(names), make([]byte, section))
	write(uint32(1), uint32(1), uint64(0), uint64(0), at, uint64(len(information)), uint32(0), uint32(0), uint64(1), uint64(0))
	write(uint32(10), uint32(3), uint64(0), uint64(0), at+uint64(len(information)), uint64(len(names)), uint32(0), uint32(0), uint64(1), uint64(0))
	return b.Bytes()
}

func TestOrder(t *testing.T) {
	folder := t.TempDir()
	for name, information := range map[string]string{
		"a/top.ko":        "license=GPL\x00depends=middle_one,base\x00",
		"b/middle-one.ko": "depends=base\x00name=middle_one\x00",
		"base.ko":         "depends=\x00",
		"unused.ko":       "depends=\x00",
		"circle.ko":       "depends=circle\x00",
		"lost.ko":         "depends=nothing\x00",
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, module(t, information), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Order(folder, "top", "base")
	want := []string{filepath.Join(folder, "base.ko"), filepath.Join(folder, "b/middle-one.ko"), filepath.Join(folder, "a/top.ko")}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the order is %q, %v, want %q", got, err, want)
	}
	if err := os.WriteFile(filepath.Join(folder, "text.ko"), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"circle": "circle needs itself",
		"lost":   "lost: there is no module nothing",
		"text":   "text.ko",
	} {
		if _, err := Order(folder, name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}
