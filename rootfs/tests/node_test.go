package tests

import (
	"bytes"
	"debug/elf"
	"fmt"
	"slices"
	"testing"

	"github.com/u-root/u-root/pkg/cpio"
)

// nodeFiles is everything in a node's root filesystem: path, type and permissions,
// owner and group, and a device's numbers.
var nodeFiles = []string{
	"dev 40755 0:0 0:0",
	"dev/console 20600 0:0 5:1",
	"etc 40755 0:0 0:0",
	"init 100755 0:0 0:0",
	"proc 40555 0:0 0:0",
	"run 40755 0:0 0:0",
	"sbin 40755 0:0 0:0",
	"sbin/pcd 100755 0:0 0:0",
	"sys 40555 0:0 0:0",
	"tmp 41777 0:0 0:0",
	"usr 40755 0:0 0:0",
	"usr/lib 40755 0:0 0:0",
	"usr/lib/powercloud 40755 0:0 0:0",
	"usr/lib/powercloud/state.ext4.zst 100644 0:0 0:0",
	"var 40755 0:0 0:0",
	"var/lib 40755 0:0 0:0",
}

// nodePrograms are those among them, each with a package of which it has functions. A
// program keeps their names for the traces of its last words.
var nodePrograms = map[string]string{
	"init":     "powercloud.unidatum.com/go/node/boot.",
	"sbin/pcd": "powercloud.unidatum.com/go/node/daemon.",
}

// TestNode looks at the root filesystems that nodes have.
func TestNode(t *testing.T) {
	for variable, machine := range map[string]elf.Machine{"NODE_AMD64": elf.EM_X86_64, "NODE_ARM64": elf.EM_AARCH64} {
		var got []string
		for _, r := range records(t, variable) {
			got = append(got, fmt.Sprintf("%s %o %d:%d %d:%d", r.Name, r.Mode, r.UID, r.GID, r.Rmajor, r.Rminor))
			content := make([]byte, r.FileSize)
			if _, err := r.ReadAt(content, 0); err != nil && r.FileSize > 0 {
				t.Fatal(err)
			}
			of, wanted := nodePrograms[r.Name]
			if isProgram := startsByItself(r, content); isProgram != wanted {
				t.Errorf("%s: whether %s is a program is told as %v", variable, r.Name, isProgram)
			}
			if !wanted {
				continue
			}
			if err := checkStatic(content, machine); err != nil {
				t.Errorf("%s: %s: %v", variable, r.Name, err)
			}
			if !bytes.Contains(content, []byte(of)) {
				t.Errorf("%s: %s has no functions of %s", variable, r.Name, of)
			}
		}
		if slices.Sort(got); !slices.Equal(got, nodeFiles) {
			t.Errorf("%s has %q, want %q", variable, got, nodeFiles)
		}
	}
}

// startsByItself reports whether Linux would start a file, or could once its
// permissions said so.
func startsByItself(r cpio.Record, content []byte) bool {
	const regular, format, execute = 0o100000, 0o170000, 0o111
	return r.Mode&format == regular &&
		(r.Mode&execute != 0 || bytes.HasPrefix(content, []byte(elf.ELFMAG)) || bytes.HasPrefix(content, []byte("#!")))
}

// checkStatic returns an error unless the program is for the machine and needs
// nothing else to run.
func checkStatic(content []byte, machine elf.Machine) error {
	program, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return err
	}
	if program.Machine != machine {
		return fmt.Errorf("it is for %s", program.Machine)
	}
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("it has a segment %s", p.Type)
		}
	}
	if libraries, err := program.ImportedLibraries(); err != nil || len(libraries) > 0 {
		return fmt.Errorf("it needs %q, %v", libraries, err)
	}
	return nil
}
