package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"powercloud.unidatum.com/go/image/cpio"
	"powercloud.unidatum.com/go/image/release"
	"powercloud.unidatum.com/go/image/rootfs"
	"powercloud.unidatum.com/go/image/secureboot"
	"powercloud.unidatum.com/go/image/uki"
	"powercloud.unidatum.com/tools/filecopy"
)

// makeInitramfs writes the compressed archive of what a list says.
func makeInitramfs(_ context.Context, arguments []string) error {
	o, err := parse(arguments, []string{"list", "output"}, nil, false)
	if err != nil {
		return err
	}
	list, err := os.ReadFile(o.get("list"))
	if err != nil {
		return err
	}
	entries, err := rootfs.Read(list)
	if err != nil {
		return err
	}
	var archive, compressed bytes.Buffer
	if err := cpio.Write(&archive, entries); err != nil {
		return err
	}
	if err := cpio.Compress(&compressed, archive.Bytes()); err != nil {
		return err
	}
	return os.WriteFile(o.get("output"), compressed.Bytes(), 0o644)
}

// makeEFI writes the EFI file, signed if there is a key.
func makeEFI(_ context.Context, arguments []string) error {
	o, err := parse(arguments,
		[]string{"architecture", "command-line", "stub", "kernel", "initramfs", "output"},
		[]string{"status", "key", "certificate"}, false)
	if err != nil {
		return err
	}
	version, err := o.version()
	if err != nil {
		return err
	}
	parts := uki.Parts{Architecture: o.get("architecture"), Version: version}
	if parts.CommandLine, err = uki.ReadCommandLine(strings.Split(o.get("command-line"), ",")...); err != nil {
		return err
	}
	for name, content := range map[string]*[]byte{
		"stub": &parts.Stub, "kernel": &parts.Kernel, "initramfs": &parts.Initramfs,
	} {
		if *content, err = os.ReadFile(o.get(name)); err != nil {
			return err
		}
	}
	image, err := uki.Assemble(parts)
	if err != nil {
		return err
	}
	pair, err := readPair(o.get("key"), o.get("certificate"))
	if err != nil {
		return err
	}
	if pair != nil {
		if image, err = secureboot.Sign(image, pair); err != nil {
			return err
		}
	}
	return os.WriteFile(o.get("output"), image, 0o644)
}

// readPair reads the key to sign with, or returns nil without one.
func readPair(key, certificate string) (*secureboot.Pair, error) {
	if key == "" && certificate == "" {
		return nil, nil
	}
	if key == "" || certificate == "" {
		return nil, errors.New("signing needs both -key and -certificate")
	}
	keyContent, err := readSmall(key)
	if err != nil {
		return nil, fmt.Errorf("read the Secure Boot key: %w", err)
	}
	certificateContent, err := readSmall(certificate)
	if err != nil {
		return nil, fmt.Errorf("read the Secure Boot certificate: %w", err)
	}
	return secureboot.ParsePair(keyContent, certificateContent, time.Now())
}

// readSmall reads a file, and not much more of it than a key or a certificate has.
func readSmall(name string) (content []byte, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return io.ReadAll(io.LimitReader(file, secureboot.MaxFileSize+1))
}

// makeRelease copies files into a folder under their names of a release, and adds
// their checksums.
func makeRelease(_ context.Context, arguments []string) error {
	o, err := parse(arguments, []string{"output"}, []string{"status"}, true)
	if err != nil {
		return err
	}
	version, err := o.version()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.get("output"), 0o755); err != nil {
		return err
	}
	for _, file := range o.rest {
		name, err := release.Name(filepath.Base(file), version)
		if err != nil {
			return err
		}
		if err := filecopy.Copy(filepath.Join(o.get("output"), name), file, 0o200); err != nil {
			return err
		}
	}
	return release.WriteSums(o.get("output"))
}
