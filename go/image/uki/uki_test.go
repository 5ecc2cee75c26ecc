package uki

import (
	"bytes"
	"compress/gzip"
	"debug/pe"
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/go/image/uki/ukitest"
)

// parts returns the parts of a small image.
func parts(architecture string) Parts {
	return Parts{
		Architecture: architecture,
		Version:      "v2026.11.30",
		CommandLine:  "console=tty0 panic=10",
		Stub:         ukitest.Stub(architecture),
		Kernel:       ukitest.Kernel(architecture, "6.1.176-powercloud"),
		Initramfs:    []byte(strings.Repeat("an initramfs ", 60)),
	}
}

// assembled returns a small image.
func assembled(t testing.TB, architecture string) []byte {
	t.Helper()
	image, err := Assemble(parts(architecture))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestReadWhatWasAssembled(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		t.Run(architecture, func(t *testing.T) {
			content := assembled(t, architecture)
			if !bytes.Equal(content, assembled(t, architecture)) {
				t.Error("the same parts gave other bytes")
			}
			image, err := Read(bytes.NewReader(content), int64(len(content)))
			if err != nil {
				t.Fatal(err)
			}
			want := parts(architecture)
			if image.Architecture != architecture || image.Version != want.Version || image.KernelRelease != "6.1.176-powercloud" ||
				image.CommandLine != want.CommandLine || image.Signed || !strings.Contains(image.SBAT, "\npowercloud,1,PowerCloud,powercloud,v2026.11.30,") {
				t.Errorf("it is %+v", image)
			}
			for name, test := range map[string]struct {
				got  *io.SectionReader
				want []byte
			}{"kernel": {image.Kernel, want.Kernel}, "initramfs": {image.Initramfs, want.Initramfs}} {
				if got, err := io.ReadAll(test.got); err != nil || !bytes.Equal(got, test.want) {
					t.Errorf("the %s has %d bytes (%v), want %d", name, len(got), err, len(test.want))
				}
			}
		})
	}
}

// TestLayout looks at an image with the standard library's reader of PE files,
// which shares nothing with this package's.
func TestLayout(t *testing.T) {
	checkLayout(t, assembled(t, "amd64"), ".text .sdmagic .sbat .osrel .cmdline .uname .initrd .linux")
}

// checkLayout checks what any loader of an image with these sections relies on.
func checkLayout(t *testing.T, content []byte, names string) {
	t.Helper()
	file, err := pe.NewFile(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	header, ok := file.OptionalHeader.(*pe.OptionalHeader64)
	if !ok {
		t.Fatal("it is no 64-bit program")
	}
	var got []string
	var end, fileEnd uint32
	for _, s := range file.Sections {
		got = append(got, s.Name)
		if s.VirtualAddress < end || s.Offset < fileEnd {
			t.Errorf("%s overlaps the section before", s.Name)
		}
		if s.Offset%header.FileAlignment != 0 || s.Size%header.FileAlignment != 0 {
			t.Errorf("%s is not aligned in the file", s.Name)
		}
		end, fileEnd = s.VirtualAddress+s.VirtualSize, s.Offset+s.Size
	}
	if strings.Join(got, " ") != names {
		t.Errorf("the sections are %q, want %q", got, names)
	}
	if header.SizeOfImage < end || header.SizeOfImage-end >= header.SectionAlignment || header.SizeOfImage%header.SectionAlignment != 0 {
		t.Errorf("SizeOfImage is %#x, where the sections end at %#x", header.SizeOfImage, end)
	}
	if int(fileEnd) != len(content) || file.TimeDateStamp != 0 || header.CheckSum != 0 {
		t.Errorf("the sections end at %d of %d bytes, the time is %d, the checksum %#x", fileEnd, len(content), file.TimeDateStamp, header.CheckSum)
	}
	sbat, err := file.Section(".sbat").Data()
	if err != nil || !bytes.HasPrefix(sbat, []byte("sbat,1,")) {
		t.Errorf("the section .sbat has %q, %v", sbat, err)
	}
}

func TestStubsSBATIsKept(t *testing.T) {
	content := assembled(t, "arm64")
	image, err := Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(image.SBAT, "\n"); len(lines) != 4 || lines[0] != sbatHeader || lines[1] != ukitest.SBAT {
		t.Errorf("the lines are %q", lines)
	}
}

func TestPartsRefused(t *testing.T) {
	for want, change := range map[string]func(p *Parts){
		"the stub is for arm64":             func(p *Parts) { p.Stub = ukitest.Stub("arm64") },
		"the kernel for arm64":              func(p *Parts) { p.Kernel = ukitest.Kernel("arm64", "6.1") },
		"the stub: not a valid EFI image":   func(p *Parts) { p.Stub = []byte("MZ") },
		"the kernel: not a valid EFI image": func(p *Parts) { p.Kernel = p.Kernel[:60] },
		"the version":                       func(p *Parts) { p.Version = "v1 quiet" },
		"the kernel command line: it has 0": func(p *Parts) { p.CommandLine = "" },
		"other characters than printable":   func(p *Parts) { p.CommandLine = "a\nb" },
		"instead of 1 to 2047":              func(p *Parts) { p.CommandLine = strings.Repeat("a", 2048) },
		"the initramfs is empty":            func(p *Parts) { p.Initramfs = nil },
		"larger than 80 MiB":                func(p *Parts) { p.Initramfs = make([]byte, MaxSize) },
		`release is said to be "six"`:       func(p *Parts) { p.Kernel = ukitest.Kernel("amd64", "six") },
	} {
		p := parts("amd64")
		change(&p)
		if _, err := Assemble(p); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// field returns where a field of the headers of a test's image is.
func field(content []byte, optional int) int {
	return int(binary.LittleEndian.Uint32(content[0x3c:])) + 24 + optional
}

// header returns the header of a section.
func header(content []byte, name string) []byte {
	at := bytes.Index(content, append([]byte(name), make([]byte, 8-len(name))...))
	return content[at : at+40]
}

func TestReadRefused(t *testing.T) {
	le := binary.LittleEndian
	for want, change := range map[string]func(c []byte) []byte{
		"it has 10 bytes":                func(c []byte) []byte { return c[:10] },
		"begins with no MZ":              func(c []byte) []byte { c[0] = 0; return c },
		"PE header is said to be at 3":   func(c []byte) []byte { c[0x3c] = 3; return c },
		"it has no PE header":            func(c []byte) []byte { c[128] = 0; return c },
		"unknown machine":                func(c []byte) []byte { c[132] = 0; return c },
		"no executable":                  func(c []byte) []byte { c[128+22] = 0; return c },
		"it has 255 sections":            func(c []byte) []byte { c[134] = 255; return c },
		"it has symbols":                 func(c []byte) []byte { c[136+4] = 1; return c },
		"not that of a 64-bit":           func(c []byte) []byte { c[field(c, 0)] = 0; return c },
		"subsystem 3":                    func(c []byte) []byte { c[field(c, 68)] = 3; return c },
		"alignments are 512 and 513":     func(c []byte) []byte { c[field(c, 32)]++; return c },
		"headers are said to have 512":   func(c []byte) []byte { le.PutUint32(c[field(c, 60):], 512); return c },
		"starts at the address 0x0":      func(c []byte) []byte { le.PutUint32(c[field(c, 16):], 0); return c },
		"bytes in memory, where":         func(c []byte) []byte { le.PutUint32(c[field(c, 56):], 1<<20); return c },
		"it has the section .uname twic": func(c []byte) []byte { copy(header(c, ".osrel"), ".uname"); return c },
		"it has the name \"\\x01osrel\"": func(c []byte) []byte { header(c, ".osrel")[0] = 1; return c },
		"no section .osrel":              func(c []byte) []byte { header(c, ".osrel")[1] = 'x'; return c },
		"free ones are":                  func(c []byte) []byte { le.PutUint32(header(c, ".osrel")[12:], 0x1000); return c },
		"in memory and 512 in the file":  func(c []byte) []byte { le.PutUint32(header(c, ".uname")[8:], 700); return c },
		"with 1 bytes in memory and 102": func(c []byte) []byte { le.PutUint32(header(c, ".initrd")[8:], 1); return c },
		"is at byte 0":                   func(c []byte) []byte { le.PutUint32(header(c, ".uname")[20:], 0); return c },
		"relocations":                    func(c []byte) []byte { header(c, ".uname")[32] = 1; return c },
		"characteristics 0x1":            func(c []byte) []byte { le.PutUint32(header(c, ".uname")[36:], 1); return c },
		"where its headers account for":  func(c []byte) []byte { return append(c, 0) },
		"and the file at":                func(c []byte) []byte { return c[:len(c)-1] },
		"its certificates are 8 bytes":   func(c []byte) []byte { le.PutUint64(c[field(c, 144):], 8<<32|1); return c },
		".cmdline is no text": func(c []byte) []byte {
			return bytes.Replace(c, []byte("console=tty0"), []byte("console=\xff\xff\xff\xff"), 1)
		},
		"not that of PowerCloud": func(c []byte) []byte { return bytes.Replace(c, []byte("ID=powercloud"), []byte("ID=powerclout"), 1) },
		"names 0 versions":       func(c []byte) []byte { return bytes.Replace(c, []byte("\nVERSION="), []byte("\nWERSION="), 1) },
		"the version \"v2026 11": func(c []byte) []byte { return bytes.Replace(c, []byte("\"v2026.11"), []byte("\"v2026 11"), 1) },
		"and has a kernel for arm64": func(c []byte) []byte {
			le.PutUint16(c[le.Uint32(header(c, ".linux")[20:])+0x84:], pe.IMAGE_FILE_MACHINE_ARM64)
			return c
		},
	} {
		content := change(assembled(t, "amd64"))
		_, err := Read(bytes.NewReader(content), int64(len(content)))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Read(bytes.NewReader(nil), MaxSize+1); !errors.Is(err, ErrFormat) {
		t.Errorf("an image that is too large: %v", err)
	}
	failure := errors.New("the disk is gone")
	if _, err := Read(failing{failure}, 4096); !errors.Is(err, failure) || errors.Is(err, ErrFormat) {
		t.Errorf("a disk that fails: %v", err)
	}
}

// failing is a disk that fails.
type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func FuzzRead(f *testing.F) {
	f.Add(assembled(f, "amd64"))
	f.Add(assembled(f, "arm64"))
	f.Add(ukitest.Stub("amd64"))
	f.Add([]byte("MZ"))
	f.Fuzz(func(t *testing.T, content []byte) {
		image, err := Read(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			if !errors.Is(err, ErrFormat) {
				t.Errorf("the error is no error of the format: %v", err)
			}
			return
		}
		// What is read must be inside the file, and fit to be shown.
		for _, part := range []*io.SectionReader{image.Kernel, image.Initramfs} {
			if n, err := io.Copy(io.Discard, part); err != nil || n != part.Size() {
				t.Errorf("a part has %d of %d bytes: %v", n, part.Size(), err)
			}
		}
		if err := CheckVersion(image.Version); err != nil {
			t.Error(err)
		}
	})
}

func TestKernelRelease(t *testing.T) {
	const release = "6.1.0-50-cloud-amd64"
	plain := ukitest.Kernel("arm64", release)
	for name, kernel := range map[string][]byte{
		"x86": ukitest.Kernel("amd64", release), "arm64": plain,
		"gzip": zboot(t, "gzip", plain), "zstd": zboot(t, "zstd22", plain),
	} {
		if got, err := KernelRelease(kernel); err != nil || got != release {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	outside := ukitest.Kernel("amd64", release)
	outside[0x20f] = 0xff
	cut := zboot(t, "gzip", plain)
	for want, kernel := range map[string][]byte{
		"neither an x86 header": plain[:512],
		"points outside":        outside,
		"with \"lzma\"":         zboot(t, "lzma", plain),
		"outside of it":         cut[:len(cut)-1],
	} {
		if _, err := KernelRelease(kernel); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// zboot returns a kernel compressed in the way of an arm64 EFI image.
func zboot(t *testing.T, compression string, kernel []byte) []byte {
	t.Helper()
	var payload bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&payload)
	if compression == "zstd22" {
		encoder, err := zstd.NewWriter(&payload)
		if err != nil {
			t.Fatal(err)
		}
		w = encoder
	}
	if _, err := w.Write(kernel); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 64)
	copy(out, "MZ\x00\x00zimg")
	binary.LittleEndian.PutUint32(out[8:], uint32(len(out)))
	binary.LittleEndian.PutUint32(out[12:], uint32(payload.Len()))
	copy(out[24:], compression)
	return append(out, payload.Bytes()...)
}

func TestCommandLine(t *testing.T) {
	got, err := ParseCommandLine([]byte("# Why.\na=1\nb\n\n# Because.\nc=2\n"))
	if err != nil || got != "a=1 b c=2" {
		t.Errorf("%q, %v", got, err)
	}
	for want, content := range map[string]string{
		"line 2 must be one word":         "# Why.\na b\n",
		"line 1: no comment says":         "a\n",
		"line 4: no comment says":         "# Why.\na\n\nb\n",
		"line 3: a is there twice":        "# Why.\na\na\n",
		"it has 0 bytes":                  "# Why.\n",
		"line 2 must be one word: \"\xc3": "# Why.\n\u00e4\n",
	} {
		if _, err := ParseCommandLine([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestRelease(t *testing.T) {
	for _, version := range []string{"dev", "v2026.11.30", "v2026.11.30.1", "v2026.11.30-3-gABCDEF0-dirty", "1+2"} {
		content, err := Release{Version: version}.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParseRelease(content); err != nil || got.Version != version {
			t.Errorf("%s became %v, %v", version, got, err)
		}
	}
	for _, version := range []string{"", "-1", "a..b", "a\"", "a b", "a\nb", "../a", strings.Repeat("1", 65)} {
		if _, err := (Release{Version: version}).Marshal(); err == nil {
			t.Errorf("the version %q passed", version)
		}
	}
}
