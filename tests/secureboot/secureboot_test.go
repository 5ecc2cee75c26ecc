package secureboot

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/go/image/secureboot"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
	"powercloud.unidatum.com/tools/lint"
)

// patience is how long a machine may take altogether, on a host that is busy.
const patience = 5 * time.Minute

// newPair makes a key as tools/sb-keygen does.
func newPair(t *testing.T) *secureboot.Pair {
	t.Helper()
	now, folder := time.Now(), t.TempDir()
	if err := secureboot.Generate(folder, now); err != nil {
		t.Fatal(err)
	}
	var files [2][]byte
	for i, name := range []string{secureboot.KeyFile, secureboot.CertificateFile} {
		content, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		files[i] = content
	}
	pair, err := secureboot.ParsePair(files[0], files[1], now)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// sign signs an EFI file.
func sign(t *testing.T, system []byte, pair *secureboot.Pair) []byte {
	t.Helper()
	signed, err := secureboot.Sign(slices.Clone(system), pair)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// changed is a copy with one byte changed in the middle, where kernel and initramfs
// are.
func changed(system []byte) []byte {
	system = slices.Clone(system)
	system[len(system)/2] ^= 1
	return system
}

// unsigned is the node's EFI file.
func unsigned(t *testing.T) []byte {
	t.Helper()
	path := os.Getenv("UNSIGNED_EFI")
	if path == "" {
		t.Skip("only Bazel builds the image that this test starts")
	}
	name, err := lint.Runfile(path)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// writeDisk writes a disk image with a system.
func writeDisk(t *testing.T, architecture machine.Architecture, system []byte) string {
	t.Helper()
	t.Setenv("SOURCE_DATE_EPOCH", disk.FileTime)
	file, err := os.Create(filepath.Join(t.TempDir(), "disk.img"))
	if err != nil {
		t.Fatal(err)
	}
	if err := disk.Write(file, string(architecture), system); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// TestSecureBoot gives a machine with one owner's certificate systems that are and
// aren't signed by him.
func TestSecureBoot(t *testing.T) {
	system := unsigned(t)
	architecture := machine.Architecture(os.Getenv("MACHINE_ARCHITECTURE"))
	owner, other := newPair(t), newPair(t)
	keys := variables.SecureBoot(owner.Certificate(), owner.Certificate(), owner.Certificate())
	for name, test := range map[string]struct {
		system []byte
		starts bool
	}{
		"signed":           {sign(t, system, owner), true},
		"unsigned":         {system, false},
		"one byte changed": {changed(sign(t, system, owner)), false},
		"another's key":    {sign(t, system, other), false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			m := machine.Start(ctx, t, machine.Config{
				Architecture: architecture,
				MemoryMiB:    1024,
				CPUs:         2,
				Firmware:     machine.SecureBoot,
				Variables:    keys,
				Disks:        []machine.Disk{{Image: writeDisk(t, architecture, test.system)}},
				// Without a card, firmware that refused the disk has nothing else to try.
				Random: true,
			})
			if test.starts {
				m.Expect(ctx, `This node is blank`)
				return
			}
			m.Expect(ctx, `BdsDxe: failed to load Boot.*: Access Denied`)
			m.Expect(ctx, `BdsDxe: No bootable option or device was found`)
			if all := m.Console().Last(1000); strings.Contains(all, "pcinit") || strings.Contains(all, "Linux version") {
				t.Errorf("it started:\n%s", all)
			}
		})
	}
}
