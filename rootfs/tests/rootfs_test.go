package tests

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/u-root/u-root/pkg/cpio"

	"powercloud.unidatum.com/tools/lint"
)

// records reads the initramfs that a variable of the environment names.
func records(t *testing.T, variable string) []cpio.Record {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip("Bazel builds the root filesystem for this test: bazel test //rootfs/tests:all")
	}
	name, err := lint.Runfile(path)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	archive, err := decoder.DecodeAll(compressed, nil)
	if err != nil {
		t.Fatal(err)
	}
	found, err := cpio.ReadAllRecords(cpio.Newc.Reader(bytes.NewReader(archive)))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestRule looks at what the rule made of the declaration in BUILD.bazel, and that
// the program in it is for the machine that the root filesystem is for.
func TestRule(t *testing.T) {
	for variable, machine := range map[string]elf.Machine{"AMD64": elf.EM_X86_64, "ARM64": elf.EM_AARCH64} {
		var got []string
		for _, r := range records(t, variable) {
			content := make([]byte, r.FileSize)
			if _, err := r.ReadAt(content, 0); err != nil && r.FileSize > 0 {
				t.Fatal(err)
			}
			if r.Name == "init" {
				if err := checkStatic(content, machine); err != nil {
					t.Errorf("%s: the program: %v", variable, err)
				}
				content = nil
			}
			got = append(got, fmt.Sprintf("%s %o %d:%d %d:%d %q", r.Name, r.Mode, r.UID, r.GID, r.Rmajor, r.Rminor, content))
		}
		want := []string{
			`dev 40755 0:0 0:0 ""`,
			`dev/console 20600 0:0 5:1 ""`,
			`etc 40755 0:0 0:0 ""`,
			`etc/both 100644 0:0 0:0 "one\ntwo\n"`,
			`etc/one 100600 1:2 0:0 "one\n"`,
			`init 100755 0:0 0:0 ""`,
			`linked 120777 0:0 0:0 "/init"`,
			`tmp 41777 0:0 0:0 ""`,
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s has %q, want %q", variable, got, want)
		}
	}
}
