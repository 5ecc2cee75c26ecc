package kernel_test

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"io"
	"regexp"
	"testing"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/tests/built"
)

// The largest files for amd64, in bytes. Kernel, initramfs and stub share the EFI file.
const (
	maxSize = 12 << 20
	maxEFI  = 16 << 20
)

func TestImageIsEFIProgram(t *testing.T) {
	for architecture, machine := range map[string]uint16{"amd64": pe.IMAGE_FILE_MACHINE_AMD64, "arm64": pe.IMAGE_FILE_MACHINE_ARM64} {
		image := built.Content(t, "KERNEL_"+architecture)
		file, err := pe.NewFile(bytes.NewReader(image))
		if err != nil {
			t.Errorf("%s: %v", architecture, err)
			continue
		}
		header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
		if !ok || header.Subsystem != pe.IMAGE_SUBSYSTEM_EFI_APPLICATION || file.Machine != machine {
			t.Errorf("%s: it is for machine %#x with the header %+v", architecture, file.Machine, file.OptionalHeader)
		}
	}
	if size := len(built.Content(t, "KERNEL_amd64")); size > maxSize {
		t.Errorf("the kernel for amd64 has %d bytes, more than %d", size, maxSize)
	}
}

// TestSizeOfEFIFile looks at the file that a release has, with this kernel in it.
func TestSizeOfEFIFile(t *testing.T) {
	file := built.Content(t, "EFI_amd64")
	if size := len(file); size > maxEFI {
		t.Errorf("the EFI file for amd64 has %d bytes, more than %d", size, maxEFI)
	}
	if !bytes.Contains(file, built.Content(t, "KERNEL_amd64")) {
		t.Error("the EFI file for amd64 doesn't have the kernel that is looked at here")
	}
}

// unpackBzImage returns the kernel that is compressed in a bzImage. Where it lies
// is stated in Documentation/x86/boot.rst of the kernel's source: setup_sects,
// payload_offset and payload_length.
func unpackBzImage(image []byte) ([]byte, error) {
	if len(image) < 0x250 || string(image[0x202:0x206]) != "HdrS" {
		return nil, errors.New("it is no bzImage")
	}
	from := (int(image[0x1f1])+1)*512 + int(binary.LittleEndian.Uint32(image[0x248:]))
	length := int(binary.LittleEndian.Uint32(image[0x24c:]))
	if from > len(image) || length < 4 || length > len(image)-from {
		return nil, errors.New("its payload lies outside")
	}
	// The last four bytes are the size of what is unpacked.
	plain, err := zstd.NewReader(bytes.NewReader(image[from:from+length-4]), zstd.WithDecoderMaxWindow(1<<28))
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	return io.ReadAll(plain)
}

// TestNothingOfTheBuild looks for what would differ between two machines that
// build.
func TestNothingOfTheBuild(t *testing.T) {
	arm64 := built.Content(t, "KERNEL_arm64")
	amd64, err := unpackBzImage(built.Content(t, "KERNEL_amd64"))
	if err != nil {
		t.Fatal(err)
	}
	banner := regexp.MustCompile(`Linux version 6\.1\.[0-9]+ \(powercloud@powercloud\) \([^\n]*gcc[^\n]*\) #1 SMP Thu Jan  1 00:00:00 UTC 1970`)
	path := regexp.MustCompile(`[ -~]*(?:/build/|/tmp/|/home/|/root/\.cache|sandbox/)[ -~]*`)
	for architecture, kernel := range map[string][]byte{"amd64": amd64, "arm64": arm64} {
		if !banner.Match(kernel) {
			t.Errorf("%s: no fixed time, user and host in %q", architecture, regexp.MustCompile(`Linux version [ -~]*`).Find(kernel))
		}
		if found := path.Find(kernel); found != nil {
			t.Errorf("%s: a path of the build is in %q", architecture, found)
		}
	}
}

// TestSymbols checks that the map belongs to a kernel with readable panics.
func TestSymbols(t *testing.T) {
	for _, architecture := range architectures {
		symbols := built.Content(t, "MAP_"+architecture)
		for _, name := range []string{"start_kernel", "panic", "wg_mod_init", "nvme_probe"} {
			if !bytes.Contains(symbols, []byte(" "+name+"\n")) {
				t.Errorf("%s: there is no symbol %s", architecture, name)
			}
		}
		if config(t, architecture).Get("KALLSYMS") != "y" {
			t.Errorf("%s: panics name no functions", architecture)
		}
	}
}
