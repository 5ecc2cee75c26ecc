package uki

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Image is an image that was read and checked.
type Image struct {
	// Architecture is the machine's, in Go's terms: "amd64" or "arm64".
	Architecture string
	// Version is PowerCloud's, such as "v2026.11.30", or "dev".
	Version string
	// KernelRelease is the kernel's, as uname -r prints it.
	KernelRelease string
	// CommandLine is the kernel's.
	CommandLine string
	// SBAT is the text that revocations of boot programs refer to.
	SBAT string
	// Signed tells whether the image carries signatures. That says nothing of
	// whose they are, or whether they are right.
	Signed bool
	// Kernel is the kernel, itself an EFI program.
	Kernel *io.SectionReader
	// Initramfs is the initramfs, compressed.
	Initramfs *io.SectionReader
}

// Read reads an image of size bytes and checks that it is a PowerCloud image as
// Assemble makes them, signed or not. It trusts nothing in it, and reads no more
// than the headers and the small sections. An error of the file's content wraps
// ErrFormat.
func Read(r io.ReaderAt, size int64) (*Image, error) {
	x, err := parseExecutable(r, size)
	if err != nil {
		return nil, err
	}
	if err := x.checkEnd(size); err != nil {
		return nil, err
	}
	if last := x.sections[len(x.sections)-1]; uint64(x.optional.SizeOfImage) != align(last.end(), x.optional.SectionAlignment) {
		return nil, malformed("it is said to have %#x bytes in memory, where its sections end at %#x", x.optional.SizeOfImage, last.end())
	}
	image := &Image{Architecture: machines[x.file.Machine], Signed: x.signed}
	texts := map[string]string{}
	for name, limit := range map[string]uint32{
		sectionRelease: maxRelease, sectionCommandLine: maxCommandLine, sectionKernelRelease: maxKernelRelease, sectionSBAT: maxSBAT,
	} {
		if texts[name], err = x.text(r, name, limit); err != nil {
			return nil, err
		}
	}
	image.CommandLine, image.KernelRelease, image.SBAT = texts[sectionCommandLine], texts[sectionKernelRelease], texts[sectionSBAT]
	release, err := ParseRelease([]byte(texts[sectionRelease]))
	if err != nil {
		return nil, err
	}
	image.Version = release.Version
	if image.Kernel, err = x.resource(r, sectionKernel); err != nil {
		return nil, err
	}
	if image.Initramfs, err = x.resource(r, sectionInitramfs); err != nil {
		return nil, err
	}
	machine, err := kernelMachine(image.Kernel)
	if err != nil {
		return nil, err
	}
	if machine != image.Architecture {
		return nil, malformed("it is for %s and has a kernel for %s", image.Architecture, machine)
	}
	return image, nil
}

// resource returns the content of a resource's section.
func (x *executable) resource(r io.ReaderAt, name string) (*io.SectionReader, error) {
	s, ok := x.find(name)
	switch {
	case !ok:
		return nil, malformed("it has no section %s", name)
	case s.address%resourceAlignment != 0 || s.size > s.fileSize || s.fileSize-s.size >= x.optional.FileAlignment:
		return nil, malformed("its section %s is at the address %#x with %d bytes in memory and %d in the file", name, s.address, s.size, s.fileSize)
	case s.characteristics != resourceCharacteristics:
		return nil, malformed("its section %s has the characteristics %#x", name, s.characteristics)
	}
	return io.NewSectionReader(r, int64(s.offset), int64(s.size)), nil
}

// text returns the content of a resource's section that is text of at most limit
// bytes.
func (x *executable) text(r io.ReaderAt, name string, limit uint32) (string, error) {
	content, err := x.resource(r, name)
	if err != nil {
		return "", err
	}
	if content.Size() > int64(limit) {
		return "", malformed("its section %s has more than %d bytes", name, limit)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		return "", fmt.Errorf("read the section %s: %w", name, err)
	}
	if !utf8.Valid(text) || bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\n' || c == 0x7f }) {
		return "", malformed("its section %s is no text", name)
	}
	return string(text), nil
}

// kernelMachine returns the architecture, in Go's terms, of a kernel with an EFI
// stub. Kernels have their own layout of a PE file, so nothing else is checked.
func kernelMachine(kernel io.ReaderAt) (string, error) {
	var headers [maxHeaders]byte
	n, err := kernel.ReadAt(headers[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read the kernel: %w", err)
	}
	if n < dosHeaderSize || !strings.HasPrefix(string(headers[:n]), "MZ") {
		return "", malformed("its kernel is no EFI program")
	}
	start := int64(binary.LittleEndian.Uint32(headers[newHeaderOffset:]))
	if start < dosHeaderSize || start+4+int64(binary.Size(pe.FileHeader{})) > int64(n) || string(headers[start:start+4]) != "PE\x00\x00" {
		return "", malformed("its kernel is no EFI program")
	}
	machine := binary.LittleEndian.Uint16(headers[start+4:])
	architecture, ok := machines[machine]
	if !ok {
		return "", malformed("its kernel is for the unknown machine %#x", machine)
	}
	return architecture, nil
}

// align returns the least multiple of alignment, a power of two, from n on.
func align(n uint64, alignment uint32) uint64 {
	return (n + uint64(alignment) - 1) &^ (uint64(alignment) - 1)
}
