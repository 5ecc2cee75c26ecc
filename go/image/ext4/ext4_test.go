package ext4

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"powercloud.unidatum.com/tools/debian/program"
)

// packages returns the folder of Debian's packages.
func packages(t *testing.T) string {
	t.Helper()
	folder, ok, err := program.Packages(os.Getenv("E2FSPROGS"), Program)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skip("only Bazel unpacks mke2fs: bazel test //go/image/ext4:all")
	}
	return folder
}

// run runs a program of e2fsprogs and returns what it prints.
func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	command, err := program.Command(t.Context(), packages(t), "e2fsprogs/sbin/"+name, arguments...)
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", name, err, output)
	}
	return string(output)
}

func TestWrite(t *testing.T) {
	folder := t.TempDir()
	first, second := filepath.Join(folder, "first"), filepath.Join(folder, "second")
	for _, name := range []string{first, second} {
		if err := Write(t.Context(), packages(t), name, Size); err != nil {
			t.Fatal(err)
		}
	}
	compressed, err := os.ReadFile(first)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := os.ReadFile(second); err != nil || !bytes.Equal(compressed, again) {
		t.Errorf("the second time it has other bytes, %v", err)
	}
	if len(compressed) > 64<<10 {
		t.Errorf("it has %d bytes", len(compressed))
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	content, err := decoder.DecodeAll(compressed, nil)
	if err != nil || len(content) != Size {
		t.Fatalf("it has %d bytes, %v", len(content), err)
	}
	image := filepath.Join(folder, "image")
	if err := os.WriteFile(image, content, 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, "e2fsck", "-f", "-n", image)
	described := run(t, "dumpe2fs", "-h", image)
	for _, want := range []string{
		"Filesystem UUID:          " + identity, "Inode count:              8192", "Reserved block count:     0",
		"Inodes per group:         8192", "Total journal size:       12M", "Flex block group size:    16", "Filesystem created:       Tue Jan  1 00:00:00 1980",
		"Filesystem features:      has_journal ext_attr resize_inode dir_index filetype extent 64bit flex_bg metadata_csum_seed sparse_super large_file huge_file dir_nlink extra_isize metadata_csum\n",
	} {
		if !strings.Contains(described, want) {
			t.Errorf("there is no %q in:\n%s", want, described)
		}
	}
}

func TestNoPrograms(t *testing.T) {
	if err := Write(context.Background(), t.TempDir(), filepath.Join(t.TempDir(), "out"), Size); err == nil || !strings.HasPrefix(err.Error(), "make a file system: run e2fsprogs/sbin/mke2fs: ") {
		t.Errorf("without programs: %v", err)
	}
}
