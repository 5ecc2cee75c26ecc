package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/go/image/secureboot"
	"powercloud.unidatum.com/go/image/uki"
	"powercloud.unidatum.com/go/image/uki/ukitest"
)

// write writes files to a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	folder := t.TempDir()
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// parts are files that an EFI file is made of.
func parts(t *testing.T) string {
	t.Helper()
	folder := write(t, map[string]string{
		"stub":      string(ukitest.Stub("amd64")),
		"kernel":    string(ukitest.Kernel("amd64", "6.1.0")),
		"init":      "program",
		"consoles":  "# Where messages go.\nconsole=tty0\n",
		"line":      "# When it fails.\npanic=10\n",
		"status":    "BUILD_HOST x\nSTABLE_VERSION v2026.11.30\n",
		"unstamped": "BUILD_HOST x\n",
	})
	list := fmt.Sprintf(`{"entries": [{"path": "/init", "kind": "file", "mode": "0755", "sources": [%q]}]}`, filepath.Join(folder, "init"))
	if err := os.WriteFile(filepath.Join(folder, "list"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder
}

// step runs a step with its arguments, of which DIR/ stands for the folder.
func step(t *testing.T, folder, arguments string) error {
	t.Helper()
	return run(t.Context(), strings.Fields(strings.ReplaceAll(arguments, "DIR", folder)))
}

const (
	initramfs = "initramfs -list DIR/list -output DIR/initramfs"
	efi       = "efi -architecture amd64 -command-line DIR/consoles,DIR/line -stub DIR/stub -kernel DIR/kernel -initramfs DIR/initramfs -output DIR/a-amd64.efi"
)

// image reads the EFI file that a step wrote.
func image(t *testing.T, folder string) *uki.Image {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "a-amd64.efi"))
	if err != nil {
		t.Fatal(err)
	}
	read, err := uki.Read(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	return read
}

func TestSteps(t *testing.T) {
	folder := parts(t)
	if err := secureboot.Generate(filepath.Join(folder, "key"), time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, arguments := range []string{initramfs, efi} {
		if err := step(t, folder, arguments); err != nil {
			t.Fatal(err)
		}
	}
	if read := image(t, folder); read.Version != "dev" || read.Signed || read.CommandLine != "console=tty0 panic=10" {
		t.Errorf("it is %+v", read)
	}
	for _, arguments := range []string{
		efi + " -status DIR/status -key DIR/key/db.key -certificate DIR/key/db.crt",
		"disk -architecture amd64 -system DIR/a-amd64.efi -output DIR/disk.img",
		"gce -input DIR/disk.img -output DIR/disk.gce.tar.gz",
		"vhd -input DIR/disk.img -output DIR/disk.vhd",
		"release -status DIR/status -output DIR/release DIR/a-amd64.efi",
	} {
		if err := step(t, folder, arguments); err != nil {
			t.Fatal(err)
		}
	}
	if read := image(t, folder); read.Version != "v2026.11.30" || !read.Signed {
		t.Errorf("it is %+v", read)
	}
	if info, err := os.Stat(filepath.Join(folder, "disk.img")); err != nil || info.Size() != disk.Size {
		t.Errorf("the disk image: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "disk.gce.tar.gz")); err != nil || info.Size() < disk.Size>>10 || info.Size() > disk.Size>>8 {
		t.Errorf("the archive for Google Cloud: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(folder, "disk.vhd")); err != nil || info.Size() != disk.Size+512 {
		t.Errorf("the disk for Azure: %v, %v", info, err)
	}
	content, err := os.ReadFile(filepath.Join(folder, "release", "a-v2026.11.30-amd64.efi"))
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x  a-v2026.11.30-amd64.efi\n", sha256.Sum256(content))
	if sums, err := os.ReadFile(filepath.Join(folder, "release", "SHA256SUMS")); err != nil || string(sums) != want {
		t.Errorf("SHA256SUMS is %q, %v, want %q", sums, err, want)
	}
}

func TestRefused(t *testing.T) {
	folder := parts(t)
	if err := step(t, folder, initramfs); err != nil {
		t.Fatal(err)
	}
	for arguments, want := range map[string]string{
		"":                             "it takes a step",
		"link":                         "it takes a step",
		"disk -architecture amd64":     "disk: -system is missing",
		efi + " more":                  "it takes files after",
		"ext4 -output DIR/x":           "ext4: -packages is missing",
		"ext4 -packages DIR -output x": "run e2fsprogs/sbin/mke2fs: ",
		"release -output DIR/r":        "it takes files after",
		efi + " -key DIR/init":         "needs both -key and -certificate",
		efi + " -status DIR/unstamped": "no STABLE_VERSION",
		efi + " -status DIR/none":      "no such file",
		efi + " -key DIR/init -certificate DIR/init":              "the Secure Boot key is not in PEM form",
		efi + " -key DIR/none -certificate DIR/init":              "read the Secure Boot key",
		"release -output DIR/r DIR/init":                          "has no product",
		"release -output DIR/r DIR/a-b DIR/a-b":                   "no such file",
		"disk -architecture x -system DIR/init -output DIR/d":     "no disk image for the architecture",
		"gce -input DIR/none -output DIR/g":                       "no such file",
		"gce -input DIR/init -output DIR/g":                       "gce: pack the disk image for Google Cloud: it has 7 bytes",
		"vhd -input DIR/init -output DIR/v":                       "vhd: pack the disk image for Azure: it has 7 bytes",
		"vhd -input DIR/init":                                     "vhd: -output is missing",
		"compress -packages DIR -input DIR/init -output DIR/i.xz": "run xz-utils/usr/bin/xz",
		"initramfs -list DIR/init -output DIR/i":                  "no such list",
	} {
		err := step(t, folder, arguments)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", arguments, err, want)
		}
	}
}
