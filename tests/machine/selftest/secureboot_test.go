package selftest

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/variables"
)

// signer is a key for Secure Boot, and its certificate.
type signer struct {
	certificate *x509.Certificate
	// Paths of files in PEM.
	keyFile, certificateFile string
}

func newSigner(t *testing.T, name string) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Unix(1e9, 0), NotAfter: time.Unix(4e9, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s := signer{certificate, filepath.Join(t.TempDir(), "key"), filepath.Join(t.TempDir(), "certificate")}
	for file, block := range map[string]*pem.Block{
		s.keyFile:         {Type: "PRIVATE KEY", Bytes: private},
		s.certificateFile: {Type: "CERTIFICATE", Bytes: der},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestSecureBoot starts a kernel from a disk: one that is signed by a key that
// the machine trusts starts, and knows that it was checked; one that only its
// distribution has signed, whose key the machine doesn't know, is refused.
func TestSecureBoot(t *testing.T) {
	owner := newSigner(t, "owner")
	keys := variables.SecureBoot(owner.certificate, owner.certificate, owner.certificate)
	amd64, arm64 := kernel(t, machine.AMD64, "efivarfs"), kernel(t, machine.ARM64)
	for name, test := range map[string]struct {
		architecture machine.Architecture
		linux        *machine.Kernel
		sign         bool
		expect       []string
	}{
		"signed":           {machine.AMD64, amd64, true, []string{`guest: secureboot 1`, `guest: ready`}},
		"signed by others": {machine.AMD64, amd64, false, []string{`BdsDxe: failed to load Boot0001 .*: Access Denied`}},
		"arm64 signed":     {machine.ARM64, arm64, true, []string{`guest: ready`}},
		"arm64 by others":  {machine.ARM64, arm64, false, []string{`BdsDxe: failed to load Boot0001 .*: Access Denied`}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := machine.Patient(t)
			started := test.linux.Path
			if test.sign {
				started = filepath.Join(t.TempDir(), "signed")
				machine.Run(t, "usr/bin/sbsign", "--key", owner.keyFile, "--cert", owner.certificateFile, "--output", started, test.linux.Path)
			}
			files := folder(t, map[string]string{"vmlinuz": started, "initramfs": test.linux.Initramfs})
			option := variables.BootOption(`\vmlinuz`, test.linux.CommandLine+` initrd=\initramfs`)
			m := machine.Start(ctx, t, machine.Config{
				Architecture: test.architecture,
				Firmware:     machine.SecureBoot,
				Variables:    append(append([]variables.Variable(nil), keys...), option...),
				Disks:        []machine.Disk{{Folder: files}},
			})
			for _, pattern := range test.expect {
				m.Expect(ctx, pattern)
			}
		})
	}
}

// TestBoot starts a kernel from a disk on each controller that the firmware has
// a driver for. Debian's finds no disk on megasas and pvscsi.
func TestBoot(t *testing.T) {
	linux := kernel(t, machine.AMD64)
	files := folder(t, map[string]string{"vmlinuz": linux.Path, "initramfs": linux.Initramfs})
	option := variables.BootOption(`\vmlinuz`, linux.CommandLine+` initrd=\initramfs`)
	for _, controller := range []machine.Controller{machine.VirtioBlock, machine.VirtioSCSI, machine.NVMe, machine.AHCI} {
		t.Run(string(controller), func(t *testing.T) {
			ctx := machine.Patient(t)
			m := machine.Start(ctx, t, machine.Config{Variables: option, Disks: []machine.Disk{{Folder: files, Controller: controller}}})
			m.Expect(ctx, `guest: ready`)
			m.Type("poweroff")
			m.Wait(ctx)
		})
	}
}

// folder makes a folder with copies of files, by their names there.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	made := t.TempDir()
	for name, source := range files {
		content, err := os.ReadFile(source)
		if err == nil {
			err = os.WriteFile(filepath.Join(made, name), content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return made
}
