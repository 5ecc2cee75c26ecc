package root_test

import (
	"archive/tar"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/tools/debian/root"
)

// A file of a made-up package.
type file struct {
	kind          byte
	name, content string
}

// pack makes a package of each list of files, and packs them.
func pack(t *testing.T, links map[string]string, packages ...[]file) ([]byte, error) {
	t.Helper()
	folder := t.TempDir()
	var names []string
	for i, files := range packages {
		name := filepath.Join(folder, fmt.Sprintf("p%d_1_all.deb", i))
		if err := os.WriteFile(name, makePackage(t, files), 0o600); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	slices.Reverse(names) // Their order must make no difference.
	var packed bytes.Buffer
	err := root.Pack(&packed, names, links)
	return packed.Bytes(), err
}

// makePackage is a .deb file: an ar archive of three members.
func makePackage(t *testing.T, files []file) []byte {
	t.Helper()
	var deb bytes.Buffer
	deb.WriteString("!<arch>\n")
	member := func(name string, content []byte) {
		fmt.Fprintf(&deb, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "100644", len(content))
		deb.Write(content)
		if len(content)%2 == 1 {
			deb.WriteByte('\n')
		}
	}
	member("debian-binary", []byte("2.0\n"))
	control := "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: x\nDescription: x\n"
	member("control.tar", archive(t, []file{{tar.TypeReg, "./control", control}}))
	member("data.tar", archive(t, files))
	return deb.Bytes()
}

func archive(t *testing.T, files []file) []byte {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	for _, f := range files {
		header := &tar.Header{Typeflag: f.kind, Name: f.name, Mode: 0o4755}
		if f.kind == tar.TypeReg {
			header.Size = int64(len(f.content))
		} else {
			header.Linkname = f.content
		}
		if err := out.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if f.kind == tar.TypeReg {
			if _, err := io.WriteString(out, f.content); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// listing describes what is in a root.
func listing(t *testing.T, packed []byte) []string {
	t.Helper()
	plain, err := zstd.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var lines []string
	for entries := tar.NewReader(plain); ; {
		header, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, fmt.Sprintf("%s %o %s%s", header.Name, header.Mode, header.Linkname, content))
	}
}

func TestPack(t *testing.T) {
	first := []file{
		{tar.TypeDir, "./", ""},
		{tar.TypeDir, "./bin/", ""},
		{tar.TypeReg, "./bin/tool", "tool"},
		{tar.TypeDir, "./usr/share/doc/tool/", ""},
		{tar.TypeReg, "./usr/share/doc/tool/copyright", "x"},
	}
	second := []file{
		{tar.TypeDir, "./usr/bin/", ""},
		{tar.TypeLink, "./usr/bin/tool2", "./bin/tool"},
		{tar.TypeSymlink, "./opt/deep/link", "/etc"},
	}
	packed, err := pack(t, map[string]string{"bin/sh": "tool"}, first, second)
	if err != nil {
		t.Fatal(err)
	}
	got := listing(t, packed)
	for _, want := range []string{
		"bin 777 usr/bin", "usr/bin/ 755 ", "usr/bin/sh 777 tool", "usr/bin/tool 755 tool", "usr/bin/tool2 755 usr/bin/tool",
		"opt/deep/ 755 ", "opt/deep/link 777 /etc", "etc/passwd 644 root:x:0:0:root:/root:/bin/sh\n", "proc/ 755 ",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("there is no %q in %q", want, got)
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "copyright") {
		t.Errorf("there is documentation in %q", got)
	}
	again, err := pack(t, map[string]string{"bin/sh": "tool"}, first, second)
	if err != nil || !bytes.Equal(again, packed) {
		t.Errorf("the same packages gave other bytes (%v)", err)
	}
}

func TestPackRefuses(t *testing.T) {
	tool := []file{{tar.TypeReg, "./bin/tool", "tool"}}
	for want, packages := range map[string][][]file{
		"p1_1_all.deb: usr/bin/tool is there already":     {tool, {{tar.TypeReg, "./usr/bin/tool", "tool"}}},
		"p0_1_all.deb: usr/bin/sh is there already":       {{{tar.TypeReg, "./bin/sh", "tool"}}},
		`"../x" leads out of the root`:                    {{{tar.TypeReg, "../x", ""}}},
		`"../../x" leads out of the root`:                 {{{tar.TypeLink, "./x", "../../x"}}},
		"dev/null is no file, folder or link":             {{{tar.TypeChar, "./dev/null", ""}}},
		"etc/passwd is there already":                     {{{tar.TypeReg, "./etc/passwd", "x"}}},
		"p0_1_all.deb: etc/passwd/x: etc/passwd is there": {{{tar.TypeReg, "./etc/passwd/x", "x"}}},
	} {
		if _, err := pack(t, map[string]string{"bin/sh": "tool"}, packages...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
	if err := root.Pack(io.Discard, []string{filepath.Join(t.TempDir(), "missing.deb")}, nil); err == nil {
		t.Error("a missing package was packed")
	}
}

// unpack unpacks bytes.
func unpack(t *testing.T, packed []byte) (string, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "root.tar.zst")
	if err := os.WriteFile(name, packed, 0o600); err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	return directory, root.Unpack(name, directory)
}

func TestUnpackStaysInside(t *testing.T) {
	outside := t.TempDir()
	compress := func(plain []byte) []byte {
		encoder, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		return encoder.EncodeAll(plain, nil)
	}
	for name, files := range map[string][]file{
		"parent":   {{tar.TypeReg, "../" + filepath.Base(outside) + "/x", "x"}},
		"absolute": {{tar.TypeReg, outside + "/x", "x"}},
		"link":     {{tar.TypeSymlink, "link", outside}, {tar.TypeReg, "link/x", "x"}},
		"device":   {{tar.TypeChar, "null", ""}},
		"twice":    {{tar.TypeReg, "x", "x"}, {tar.TypeReg, "x", "x"}},
	} {
		if _, err := unpack(t, compress(archive(t, files))); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside there is %v (%v)", entries, err)
	}
	if _, err := unpack(t, []byte("no archive")); err == nil {
		t.Error("what is no archive was unpacked")
	}
}

// inRoot is, in the environment, the folder of the root in which this program
// is to run itself; and inside, what it is to say.
const (
	inRoot = "ROOT_TEST_DIRECTORY"
	inside = "ROOT_TEST_INSIDE"
)

// TestMain is also the program that TestCommand runs: outside, isolated, and in
// a root.
func TestMain(m *testing.M) {
	if os.Getenv(inside) != "" {
		os.Exit(describe())
	}
	if directory := os.Getenv(inRoot); directory != "" {
		os.Exit(runInRoot(directory))
	}
	os.Exit(m.Run())
}

func runInRoot(directory string) int {
	outside, status, err := root.Isolate()
	if outside || err != nil {
		if err != nil {
			fmt.Println(err)
		}
		return max(status, 0)
	}
	r, err := root.Open(directory)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	command := r.Command(context.Background(), "/usr/bin/tool", "argument")
	command.Env = append(command.Env, inside+"=1")
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := command.Run(); errors.As(err, &exit) {
		return exit.ExitCode()
	} else if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// describe prints what a program in a root sees.
func describe() int {
	host, _ := os.Hostname()
	entries, _ := os.ReadDir("/")
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	_, err := os.ReadFile("/proc/1/stat")
	null, openErr := os.OpenFile("/dev/null", os.O_WRONLY, 0)
	_, writeErr := null.Write([]byte("x"))
	fmt.Println(os.Args[1], os.Getuid(), host, names, len(processes), err, openErr, writeErr, os.Getenv("HOME"), os.Getenv("SECRET"))
	return 7
}

// TestCommand runs this very test program in a root.
func TestCommand(t *testing.T) {
	self, err := elf.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	if self.Section(".interp") != nil {
		t.Skip("this program needs libraries, which the root lacks: CGO_ENABLED=0 go test")
	}
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	packed, err := pack(t, nil, []file{{tar.TypeReg, "./usr/bin/tool", string(program)}})
	if err != nil {
		t.Fatal(err)
	}
	directory, err := unpack(t, packed)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/proc/self/exe")
	command.Env = append(os.Environ(), inRoot+"="+directory, "SECRET=secret")
	out, err := command.CombinedOutput()
	want := "argument 0 powercloud [bin dev etc lib lib64 proc root sbin tmp usr] 2 <nil> <nil> <nil> /root \n"
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || string(out) != want {
		t.Errorf("it ended with %v and printed %q, want exit status 7 and %q", err, out, want)
	}
	if err := os.RemoveAll(directory); err != nil {
		t.Errorf("the root can't be removed: %v", err)
	}
}
