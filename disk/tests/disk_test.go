package tests

import (
	"bytes"
	"crypto/sha256"
	"debug/pe"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/go/image/secureboot"
	"powercloud.unidatum.com/go/image/uki"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/tools/debian/program"
	"powercloud.unidatum.com/tools/lint"
)

var architectures = []string{"amd64", "arm64"}

// built returns where a file is that Bazel built for this test.
func built(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("FOLDER") == "" {
		t.Skip("Bazel builds the images for this test: bazel test //disk/tests:all")
	}
	found, err := lint.Runfile(filepath.Join(os.Getenv("FOLDER"), name))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(built(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// run runs a program of Debian packages and returns what it printed.
func run(t *testing.T, variable, path string, arguments ...string) string {
	t.Helper()
	for _, file := range strings.Fields(os.Getenv(variable)) {
		folder, ok := strings.CutSuffix(file, "/"+path)
		if !ok {
			continue
		}
		packages, err := lint.Runfile(folder)
		if err != nil {
			t.Fatal(err)
		}
		command, err := program.Command(t.Context(), packages, path, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", path, err, out)
		}
		return string(out)
	}
	t.Fatalf("the packages of %s have no %s", variable, path)
	return ""
}

func TestEFIFile(t *testing.T) {
	for _, architecture := range architectures {
		content := read(t, "standin-"+architecture+".efi")
		image, err := uki.Read(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			t.Fatal(err)
		}
		if image.Architecture != architecture || image.Version == "" || image.KernelRelease != "6.1.0-stand-in" || image.Signed {
			t.Errorf("it is %+v", image)
		}
		if !strings.Contains(image.SBAT, "\nsystemd,1,") || !strings.Contains(image.SBAT, "\npowercloud,1,") {
			t.Errorf("SBAT is %q", image.SBAT)
		}
		for _, word := range []string{"console=tty0", "panic=10", "lockdown=confidentiality", "rdinit=/init"} {
			if !slices.Contains(strings.Fields(image.CommandLine), word) {
				t.Errorf("%s: the command line %q lacks %s", architecture, image.CommandLine, word)
			}
		}
		if lines := strings.Fields(image.CommandLine); architecture == "arm64" != slices.Contains(lines, "console=ttyAMA0,115200n8") {
			t.Errorf("%s has the command line %q", architecture, lines)
		}
		layout(t, content)
	}
}

// layout checks with the standard library's reader that nothing overlaps.
func layout(t *testing.T, content []byte) {
	t.Helper()
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	var memory, onDisk uint32
	for _, s := range file.Sections {
		if s.VirtualAddress < memory || s.Offset < onDisk {
			t.Errorf("the section %s begins at %#x in memory and %#x in the file, where the one before ends at %#x and %#x", s.Name, s.VirtualAddress, s.Offset, memory, onDisk)
		}
		memory, onDisk = s.VirtualAddress+s.VirtualSize, s.Offset+s.Size
	}
	if header := file.OptionalHeader.(*pe.OptionalHeader64); header.SizeOfImage < memory {
		t.Errorf("SizeOfImage is %#x, where the sections end at %#x", header.SizeOfImage, memory)
	}
}

func TestSigned(t *testing.T) {
	certificate := built(t, "testdata/db.crt")
	parsed, err := secureboot.ParseCertificate(read(t, "testdata/db.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, architecture := range architectures {
		name := "signed-" + architecture + ".efi"
		content := read(t, name)
		if err := secureboot.Verify(content, parsed); err != nil {
			t.Error(err)
		}
		if out := run(t, "CHECKS", "sbsigntool/usr/bin/sbverify", "--cert", certificate, built(t, name)); out != "Signature verification OK\n" {
			t.Errorf("sbverify of %s prints %q", name, out)
		}
		unsigned := read(t, "standin-"+architecture+".efi")
		if len(content) <= len(unsigned) || bytes.Contains(content, []byte("PRIVATE")) {
			t.Errorf("%s has %d bytes", name, len(content))
		}
	}
}

func TestDiskImage(t *testing.T) {
	for architecture, path := range map[string]string{"amd64": "EFI/BOOT/BOOTX64.EFI", "arm64": "EFI/BOOT/BOOTAA64.EFI"} {
		image := built(t, "signed-"+architecture+".img")
		out := run(t, "CHECKS", "gdisk/sbin/sgdisk", "-v", image)
		if !strings.Contains(out, "No problems found") || strings.Contains(out, "aution") {
			t.Errorf("sgdisk prints %q", out)
		}
		out = run(t, "CHECKS", "gdisk/sbin/sgdisk", "-i", "2", image)
		if !strings.Contains(out, header.PartitionType) || !strings.Contains(out, disk.StateName) {
			t.Errorf("sgdisk prints %q", out)
		}
		volume := filepath.Join(t.TempDir(), "volume")
		extract(t, volume, image, disk.SystemOffset, disk.SystemSize)
		out = run(t, "CHECKS", "dosfstools/sbin/fsck.fat", "-n", "-v", volume)
		if !strings.Contains(out, "4 files") || strings.Contains(out, "differences") {
			t.Errorf("fsck.fat prints %q", out)
		}
		// The file's clusters follow each other, so its content is there in one
		// piece.
		content, err := os.ReadFile(volume)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(content, read(t, "signed-"+architecture+".efi")) {
			t.Errorf("%s isn't in the EFI system partition in one piece", path)
		}
	}
}

// extract copies a part of a file.
func extract(t *testing.T, to, from string, offset, size int64) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.Copy(out, io.NewSectionReader(in, offset, size)); err != nil {
		t.Fatal(err)
	}
}

func TestRelease(t *testing.T) {
	folder := built(t, "release")
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	sums := ""
	version := ""
	for _, entry := range entries {
		if entry.Name() == "SHA256SUMS" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(content), entry.Name())
		if strings.HasSuffix(entry.Name(), "-amd64.efi") {
			image, err := uki.Read(bytes.NewReader(content), int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			version = image.Version
		}
	}
	var want []string
	for _, rest := range []string{
		"amd64.efi", "amd64.gce.tar.gz", "amd64.img.xz", "amd64.vhd.xz",
		"arm64.efi", "arm64.gce.tar.gz", "arm64.img.xz", "arm64.vhd.xz",
	} {
		want = append(want, "standin-"+version+"-"+rest)
		if strings.HasSuffix(rest, ".xz") {
			run(t, "XZ", "xz-utils/usr/bin/xz", "--test", filepath.Join(folder, want[len(want)-1]))
		}
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	if !slices.Equal(got, append([]string{"SHA256SUMS"}, want...)) {
		t.Errorf("the files are %q, want %q", got, want)
	}
	if written, err := os.ReadFile(filepath.Join(folder, "SHA256SUMS")); err != nil || string(written) != sums {
		t.Errorf("SHA256SUMS is %q, %v, want %q", written, err, sums)
	}
}
