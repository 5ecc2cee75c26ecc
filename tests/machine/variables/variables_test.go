package variables

import (
	"bytes"
	"crypto/x509"
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// blank is a flash image with an empty store of this size.
func blank(size int) []byte {
	image := bytes.Repeat([]byte{0xff}, 0x48+size+100)
	copy(image[16:], volumeOfVariables[:])
	copy(image[40:], "_FVH")
	binary.LittleEndian.PutUint16(image[48:], 0x48)
	copy(image[0x48:], authenticated[:])
	binary.LittleEndian.PutUint32(image[0x48+16:], uint32(size))
	image[0x48+20], image[0x48+21] = storeFormatted, storeHealthy
	return image
}

func TestGUID(t *testing.T) {
	want := []byte{0x61, 0xdf, 0xe4, 0x8b, 0xca, 0x93, 0xd2, 0x11, 0xaa, 0x0d, 0x00, 0xe0, 0x98, 0x03, 0x2b, 0x8c}
	if !bytes.Equal(Global[:], want) {
		t.Errorf("the GUID is %x, want %x", Global, want)
	}
}

func TestAddIsRead(t *testing.T) {
	image := blank(4096)
	certificate := &x509.Certificate{Raw: []byte("certificate")}
	want := append(SecureBoot(certificate, certificate, certificate, certificate), BootOption(`\vmlinuz`, "console=ttyS0")...)
	if err := Add(image, want[:2]...); err != nil {
		t.Fatal(err)
	}
	if err := Add(image, want[2:]...); err != nil {
		t.Fatal(err)
	}
	got, err := Read(image)
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	if err := Add(image, want[0]); err == nil || !strings.Contains(err.Error(), "PK is there already") {
		t.Errorf("the error is %v", err)
	}
	if err := Add(image, Variable{Name: "big", Data: make([]byte, 4096)}); err == nil || !strings.Contains(err.Error(), "are free") {
		t.Errorf("the error is %v", err)
	}
}

// TestDeleted reads a store as the firmware leaves it after changes.
func TestDeleted(t *testing.T) {
	image := blank(4096)
	old := Variable{"a", Global, NonVolatile, []byte("old")}
	if err := Add(image, old, Variable{"b", Global, NonVolatile, []byte("gone")}); err != nil {
		t.Fatal(err)
	}
	store, err := area(image)
	if err != nil {
		t.Fatal(err)
	}
	second := align(variableHeader + 4 + 3)
	store[second+2] = 0x3d
	if got, err := Read(image); err != nil || len(got) != 1 || got[0].Name != "a" {
		t.Errorf("a deleted variable was read: %+v, %v", got, err)
	}
	if err := Add(image, Variable{"b", Global, NonVolatile, []byte("new")}); err != nil {
		t.Error(err)
	}
	if got, err := Read(image); err != nil || len(got) != 2 || string(got[1].Data) != "new" {
		t.Errorf("read %+v, %v", got, err)
	}
}

// TestFormat formats an image of 64 MiB of zeros. The header is the one that
// AAVMF was seen to write.
func TestFormat(t *testing.T) {
	image := make([]byte, 64<<20)
	if err := Format(image); err != nil {
		t.Fatal(err)
	}
	want := "00000000000000000000000000000000" + "8d2bf1ff96768b4ca9852747075b4f50" + "00000c00000000005f465648360e0000" +
		"4800f8f8000000020001000000000400" + "0000000000000000782cf3aa7b949a43" + "a1802e144ec37792b8ff03005afe0000" + "00000000ffffffff"
	if got := fmt.Sprintf("%x", image[:len(want)/2]); got != want {
		t.Errorf("it begins with %s, want %s", got, want)
	}
	if err := Add(image, BootOption("x", "y")...); err != nil {
		t.Error(err)
	}
	before := bytes.Clone(image[:4096])
	if err := Format(image); err != nil || !bytes.Equal(image[:4096], before) {
		t.Errorf("a store that has variables was formatted: %v", err)
	}
}

func TestRefuse(t *testing.T) {
	for want, damage := range map[string]func(image []byte) []byte{
		"no firmware volume":            func(image []byte) []byte { return image[:40] },
		"is longer than the image":      func(image []byte) []byte { return image[:0x48+100] },
		"not in the authenticated":      func(image []byte) []byte { image[0x48]++; return image },
		"not formatted":                 func(image []byte) []byte { image[0x48+20] = 0xff; return image },
		"header of its firmware volume": func(image []byte) []byte { image[49] = 0xff; return image },
	} {
		if _, err := Read(damage(blank(1024))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// FuzzRead reads what may be a store; what it accepts can be added to, and
// reads the same after.
func FuzzRead(f *testing.F) {
	image := blank(1024)
	f.Add(bytes.Clone(image))
	if err := Add(image, BootOption(`\vmlinuz`, "quiet")...); err != nil {
		f.Fatal(err)
	}
	f.Add(image)
	f.Fuzz(func(t *testing.T, image []byte) {
		before, err := Read(image)
		if err != nil {
			return
		}
		added := Variable{Name: "fuzz", Vendor: Global, Attributes: NonVolatile, Data: []byte("x")}
		if Add(image, added) != nil {
			return
		}
		after, err := Read(image)
		if err != nil || !reflect.DeepEqual(after, append(before, added)) {
			t.Errorf("read %+v before and %+v after, %v", before, after, err)
		}
	})
}
