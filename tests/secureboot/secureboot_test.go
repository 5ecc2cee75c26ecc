package secureboot

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/go/image/secureboot"
	"powercloud.unidatum.com/tests/built"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
	"powercloud.unidatum.com/tests/node"
)

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
	system := built.Content(t, "UNSIGNED_EFI")
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
			ctx := machine.Patient(t)
			config := node.Machine(architecture, writeDisk(t, architecture, test.system))
			config.Firmware, config.Variables = machine.SecureBoot, keys
			// Without a card, firmware that refused the disk has nothing else to try.
			config.Cards = nil
			m := machine.Start(ctx, t, config)
			if test.starts {
				m.Expect(ctx, `is waiting to be enrolled`)
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
