// Package ukitest makes stubs and kernels for tests: files that look like them
// as far as their headers go, and that nothing can run.
package ukitest

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"strings"
)

// machines are the numbers of architectures in PE/COFF.
var machines = map[string]uint16{
	"amd64": pe.IMAGE_FILE_MACHINE_AMD64,
	"arm64": pe.IMAGE_FILE_MACHINE_ARM64,
}

// stubSection is a section of a stub.
type stubSection struct {
	name            string
	address         uint32
	content         string
	characteristics uint32
}

// SBAT is the line of a stub's SBAT section that an image must keep.
const SBAT = "stand-in,1,Nobody,stand-in,1,https://example.org"

// Stub returns a stub for the architecture, "amd64" or "arm64". As with systemd's,
// that for amd64 has its SBAT text in a section, and that for arm64 after its
// sections, with fewer data directories.
func Stub(architecture string) []byte {
	sbat := "sbat,1,SBAT Version,sbat,1,https://github.com/rhboot/shim/blob/main/SBAT.md\n" + SBAT + "\n\x00"
	if architecture == "arm64" {
		text := strings.Repeat("\x1f", 600)
		stub := program(architecture, 6, []stubSection{
			{".text", 0x1000, text, pe.IMAGE_SCN_CNT_CODE | pe.IMAGE_SCN_MEM_EXECUTE | pe.IMAGE_SCN_MEM_READ},
		})
		return append(append(stub, 0), sbat...)
	}
	data := uint32(pe.IMAGE_SCN_CNT_INITIALIZED_DATA | pe.IMAGE_SCN_MEM_READ)
	return program(architecture, 16, []stubSection{
		{".text", 0x1000, strings.Repeat("\xc3", 600), pe.IMAGE_SCN_CNT_CODE | pe.IMAGE_SCN_MEM_EXECUTE | pe.IMAGE_SCN_MEM_READ},
		{".sbat", 0x2000, sbat, data},
		{".sdmagic", 0x2100, "#### LoaderInfo: stand-in ####", data},
	})
}

// program returns an EFI program with so many data directories and these sections.
func program(architecture string, directories uint16, sections []stubSection) []byte {
	const alignment = 512
	dos := make([]byte, 128)
	copy(dos, "MZ")
	dos[0x3c] = byte(len(dos))
	file := pe.FileHeader{
		Machine: machines[architecture], NumberOfSections: uint16(len(sections)), SizeOfOptionalHeader: 112 + 8*directories,
		Characteristics: pe.IMAGE_FILE_EXECUTABLE_IMAGE | pe.IMAGE_FILE_LINE_NUMS_STRIPPED,
	}
	optional := pe.OptionalHeader64{
		Magic: 0x20b, AddressOfEntryPoint: sections[0].address, SectionAlignment: alignment, FileAlignment: alignment,
		SizeOfHeaders: 2 * alignment, Subsystem: pe.IMAGE_SUBSYSTEM_EFI_APPLICATION, NumberOfRvaAndSizes: uint32(directories),
	}
	table := make([]pe.SectionHeader32, len(sections))
	var contents bytes.Buffer
	for i, s := range sections {
		copy(table[i].Name[:], s.name)
		table[i].VirtualAddress, table[i].VirtualSize = s.address, uint32(len(s.content))
		table[i].PointerToRawData = optional.SizeOfHeaders + uint32(contents.Len())
		table[i].SizeOfRawData = (uint32(len(s.content)) + alignment - 1) / alignment * alignment
		table[i].Characteristics = s.characteristics
		contents.WriteString(s.content)
		contents.Write(make([]byte, table[i].SizeOfRawData-uint32(len(s.content))))
		optional.SizeOfImage = (s.address + uint32(len(s.content)) + alignment - 1) / alignment * alignment
	}
	out := join(dos, []byte("PE\x00\x00"), file, join(optional)[:file.SizeOfOptionalHeader], table)
	out = append(out, make([]byte, int(optional.SizeOfHeaders)-len(out))...)
	return append(out, contents.Bytes()...)
}

// Kernel returns a kernel for the architecture, "amd64" or "arm64", that says it
// has this release.
func Kernel(architecture, release string) []byte {
	headers := make([]byte, 0x400)
	copy(headers, "MZ")
	headers[0x3c] = 0x80
	copy(headers[0x80:], join([]byte("PE\x00\x00"), pe.FileHeader{Machine: machines[architecture]}))
	if architecture == "amd64" {
		copy(headers[0x202:], "HdrS")
		binary.LittleEndian.PutUint16(headers[0x20e:], 0x400-0x200)
		return append(headers, release+" (nobody@nowhere) #1\x00"...)
	}
	return append(headers, "\x00Linux version "+release+" (nobody@nowhere) #1\x00"...)
}

// join returns the little-endian encodings of the parts, one after the other.
func join(parts ...any) []byte {
	var out []byte
	for _, part := range parts {
		// It fails for types of unknown size only.
		out, _ = binary.Append(out, binary.LittleEndian, part)
	}
	return out
}
