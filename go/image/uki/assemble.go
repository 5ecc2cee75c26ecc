package uki

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// resourceCharacteristics are those of a resource's section: data, readable.
const resourceCharacteristics = pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ

// Parts is what an image is made of.
type Parts struct {
	// Architecture is the machine's, in Go's terms: "amd64" or "arm64".
	Architecture string
	// Version is PowerCloud's; see Release.
	Version string
	// CommandLine is the kernel's, one line of printable ASCII.
	CommandLine string
	// Stub is systemd-stub for the architecture, not signed.
	Stub []byte
	// Kernel is a kernel with an EFI stub of its own.
	Kernel []byte
	// Initramfs is a compressed archive that the kernel can unpack.
	Initramfs []byte
}

// Assemble returns the image. Its bytes follow from the parts alone.
func Assemble(parts Parts) ([]byte, error) {
	image, err := assemble(parts)
	if err != nil {
		return nil, fmt.Errorf("assemble an EFI image for %s: %w", parts.Architecture, err)
	}
	return image, nil
}

// resource is a section to be added.
type resource struct {
	name    string
	content []byte
}

func assemble(parts Parts) ([]byte, error) {
	stub, err := parseExecutable(bytes.NewReader(parts.Stub), int64(len(parts.Stub)))
	if err != nil {
		return nil, fmt.Errorf("the stub: %w", err)
	}
	// What comes after the sections of a stub, such as its symbols, is left out.
	if stub.optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY] != (pe.DataDirectory{}) {
		return nil, errors.New("the stub is signed, and adding to it would break the signature")
	}
	machine, err := kernelMachine(bytes.NewReader(parts.Kernel))
	if err != nil {
		return nil, fmt.Errorf("the kernel: %w", err)
	}
	if s := machines[stub.file.Machine]; s != parts.Architecture || machine != parts.Architecture {
		return nil, fmt.Errorf("the stub is for %s and the kernel for %s", s, machine)
	}
	resources, err := parts.resources()
	if err != nil {
		return nil, err
	}
	image, err := stub.with(parts.Stub, resources)
	if err != nil {
		return nil, err
	}
	// Whatever is wrong with it shall not wait for a machine that doesn't boot.
	if _, err := Read(bytes.NewReader(image), int64(len(image))); err != nil {
		return nil, fmt.Errorf("what was assembled is wrong: %w", err)
	}
	return image, nil
}

// resources returns the sections to add to the stub, in their order. The kernel
// is the last, so that a later stub may run it in place.
func (parts Parts) resources() ([]resource, error) {
	release, err := Release{Version: parts.Version}.Marshal()
	if err != nil {
		return nil, err
	}
	if err := checkLine(parts.CommandLine, maxCommandLine); err != nil {
		return nil, fmt.Errorf("the kernel command line: %w", err)
	}
	kernelRelease, err := KernelRelease(parts.Kernel)
	if err != nil {
		return nil, err
	}
	sbat, err := mergeSBAT(parts.Version, parts.Stub, parts.Kernel)
	if err != nil {
		return nil, err
	}
	if len(parts.Initramfs) == 0 {
		return nil, errors.New("the initramfs is empty")
	}
	return []resource{
		{sectionSBAT, sbat},
		{sectionRelease, release},
		{sectionCommandLine, []byte(parts.CommandLine)},
		{sectionKernelRelease, []byte(kernelRelease)},
		{sectionInitramfs, parts.Initramfs},
		{sectionKernel, parts.Kernel},
	}, nil
}

// with returns the program, whose file is content, with the resources after its
// own sections. Sections of theirs that it has already are left out.
func (x *executable) with(content []byte, resources []resource) ([]byte, error) {
	added := map[string]bool{}
	for _, r := range resources {
		added[r.name] = true
	}
	out := *x
	out.sections = nil
	var contents [][]byte
	var end uint64
	for _, s := range x.sections {
		end = s.end()
		if added[s.name] {
			out.optional.SizeOfInitializedData -= s.fileSize
			continue
		}
		out.sections = append(out.sections, s)
		contents = append(contents, content[s.offset:s.offset+s.fileSize])
	}
	for _, r := range resources {
		address := align(end, resourceAlignment)
		end = address + uint64(len(r.content))
		if end > MaxSize {
			return nil, fmt.Errorf("the image would be larger than %d MiB", MaxSize>>20)
		}
		padded := make([]byte, align(uint64(len(r.content)), out.optional.FileAlignment))
		copy(padded, r.content)
		out.sections = append(out.sections, section{
			name: r.name, address: uint32(address), size: uint32(len(r.content)),
			fileSize: uint32(len(padded)), characteristics: resourceCharacteristics,
		})
		contents = append(contents, padded)
		out.optional.SizeOfInitializedData += uint32(len(padded))
	}
	out.optional.SizeOfImage = uint32(align(end, out.optional.SectionAlignment))
	return out.write(contents)
}

// write returns the file of a program with these sections and their contents. It
// sets where everything is in the file, and has no time and no checksum: the
// firmware looks at neither, and signing would change the latter.
func (x *executable) write(contents [][]byte) ([]byte, error) {
	x.file.NumberOfSections = uint16(len(x.sections))
	x.file.TimeDateStamp = 0
	x.file.PointerToSymbolTable, x.file.NumberOfSymbols = 0, 0
	x.optional.CheckSum = 0
	headers := align(uint64(x.tableEnd()), x.optional.FileAlignment)
	if len(x.sections) > maxSections || headers > maxHeaders || headers > uint64(x.sections[0].address) {
		return nil, fmt.Errorf("the headers of %d sections don't fit before the first", len(x.sections))
	}
	x.optional.SizeOfHeaders = uint32(headers)

	var out bytes.Buffer
	out.Write(x.dos)
	out.WriteString("PE\x00\x00")
	table := make([]pe.SectionHeader32, len(x.sections))
	offset := headers
	for i, s := range x.sections {
		copy(table[i].Name[:], s.name)
		table[i].VirtualAddress, table[i].VirtualSize = s.address, s.size
		table[i].PointerToRawData, table[i].SizeOfRawData = uint32(offset), s.fileSize
		table[i].Characteristics = s.characteristics
		offset += uint64(s.fileSize)
	}
	if offset > min(MaxSize, math.MaxUint32) {
		return nil, fmt.Errorf("the image would be larger than %d MiB", MaxSize>>20)
	}
	optional, err := binary.Append(nil, binary.LittleEndian, x.optional)
	if err != nil {
		return nil, fmt.Errorf("write the optional header: %w", err)
	}
	for _, part := range []any{x.file, optional[:x.file.SizeOfOptionalHeader], table} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("write the headers: %w", err)
		}
	}
	out.Write(make([]byte, headers-uint64(out.Len())))
	for _, content := range contents {
		out.Write(content)
	}
	return out.Bytes(), nil
}
