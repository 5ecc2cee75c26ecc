package uki

import (
	"bytes"
	"debug/pe"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strings"
)

const (
	dosHeaderSize   = 64
	newHeaderOffset = 0x3c // of the field of the DOS header that has the PE header's offset
	maxHeaders      = 4096 // bytes before the first section's content
	maxSections     = 32
	fixedSize       = 112 // bytes of an optional header before its data directories
	directorySize   = 8   // bytes of a data directory
	minDirectories  = 5   // as many as it takes to have signatures
	maxDirectories  = 16
	sectionSize     = 40 // bytes of a section's header
	magicPE32Plus   = 0x20b
	minAlignment    = 512
	maxAlignment    = 65536
)

// section is a section of an executable.
type section struct {
	name            string
	address         uint32 // in memory, from the image's base
	size            uint32 // in memory, in bytes
	offset          uint32 // in the file
	fileSize        uint32 // in the file, in bytes
	characteristics uint32
}

// end is the address after the section.
func (s section) end() uint64 { return uint64(s.address) + uint64(s.size) }

// executable is what the headers of an EFI program say.
type executable struct {
	dos      []byte // what is before the PE header
	file     pe.FileHeader
	optional pe.OptionalHeader64
	sections []section // in the order of their headers, which is that of their addresses
	contents int64     // where the content of the last section ends, in bytes
	signed   bool      // whether a table of certificates follows, once the end was checked
}

// parseExecutable reads and checks the headers of an EFI program of size bytes,
// but for where it ends.
// It takes less than PE/COFF allows: what linkers make and this package writes,
// where each byte of the file belongs to one thing, so that what is checked here
// is what the firmware loads.
func parseExecutable(r io.ReaderAt, size int64) (*executable, error) {
	if size < dosHeaderSize || size > MaxSize {
		return nil, malformed("it has %d bytes, instead of %d to %d", size, dosHeaderSize, MaxSize)
	}
	headers := make([]byte, min(size, maxHeaders))
	if _, err := r.ReadAt(headers, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read the headers: %w", err)
	}
	if !bytes.HasPrefix(headers, []byte("MZ")) {
		return nil, malformed("it begins with no MZ")
	}
	start := binary.LittleEndian.Uint32(headers[newHeaderOffset:])
	if start < dosHeaderSize || start%8 != 0 || int64(start) > int64(len(headers))-4 {
		return nil, malformed("its PE header is said to be at %d", start)
	}
	x := &executable{dos: headers[:start]}
	rest := bytes.NewReader(headers[start:])
	var signature [4]byte
	if _, err := io.ReadFull(rest, signature[:]); err != nil || string(signature[:]) != "PE\x00\x00" {
		return nil, malformed("it has no PE header")
	}
	if err := binary.Read(rest, binary.LittleEndian, &x.file); err != nil {
		return nil, malformed("its headers are cut off")
	}
	if err := x.readOptional(rest); err != nil {
		return nil, err
	}
	if err := x.checkHeaders(size); err != nil {
		return nil, err
	}
	table := make([]pe.SectionHeader32, x.file.NumberOfSections)
	if err := binary.Read(rest, binary.LittleEndian, table); err != nil {
		return nil, malformed("its section headers are cut off")
	}
	if err := x.addSections(table, size); err != nil {
		return nil, err
	}
	return x, x.checkEntry()
}

// readOptional reads the optional header, which has as many data directories as
// its size says. Those that are missing count as empty.
func (x *executable) readOptional(r io.Reader) error {
	size := int(x.file.SizeOfOptionalHeader)
	if size < fixedSize+minDirectories*directorySize || size > fixedSize+maxDirectories*directorySize || size%directorySize != 0 {
		return malformed("its optional header is not that of a 64-bit program")
	}
	header := make([]byte, fixedSize+maxDirectories*directorySize)
	if _, err := io.ReadFull(r, header[:size]); err != nil {
		return malformed("its headers are cut off")
	}
	if _, err := binary.Decode(header, binary.LittleEndian, &x.optional); err != nil {
		return fmt.Errorf("read the optional header: %w", err)
	}
	return nil
}

// tableEnd is where the section headers end, in bytes from the file's beginning.
func (x *executable) tableEnd() int64 {
	return int64(len(x.dos)) + 4 + int64(binary.Size(x.file)) + int64(x.file.SizeOfOptionalHeader) + sectionSize*int64(x.file.NumberOfSections)
}

// checkHeaders checks the headers but for the sections'.
func (x *executable) checkHeaders(size int64) error {
	f, o := x.file, x.optional
	switch {
	case machines[f.Machine] == "":
		return malformed("it is for the unknown machine %#x", f.Machine)
	case f.Characteristics&pe.IMAGE_FILE_EXECUTABLE_IMAGE == 0:
		return malformed("it is no executable")
	case f.NumberOfSections == 0 || f.NumberOfSections > maxSections:
		return malformed("it has %d sections, instead of 1 to %d", f.NumberOfSections, maxSections)
	case o.Magic != magicPE32Plus || fixedSize+uint64(o.NumberOfRvaAndSizes)*directorySize != uint64(f.SizeOfOptionalHeader):
		return malformed("its optional header is not that of a 64-bit program")
	case o.Subsystem != pe.IMAGE_SUBSYSTEM_EFI_APPLICATION:
		return malformed("it is for the subsystem %d, not an EFI application", o.Subsystem)
	case !isAlignment(o.FileAlignment) || !isAlignment(o.SectionAlignment) || o.SectionAlignment < o.FileAlignment:
		return malformed("its alignments are %d and %d", o.FileAlignment, o.SectionAlignment)
	case o.SizeOfHeaders%o.FileAlignment != 0 || int64(o.SizeOfHeaders) < x.tableEnd() || int64(o.SizeOfHeaders) > min(size, maxHeaders):
		return malformed("its headers are said to have %d bytes", o.SizeOfHeaders)
	}
	return nil
}

func isAlignment(n uint32) bool {
	return bits.OnesCount32(n) == 1 && n >= minAlignment && n <= maxAlignment
}

// addSections checks the section headers and adds the sections. Their contents
// must follow the headers and each other without gaps, their places in memory
// must not overlap, and no two may have the same name.
func (x *executable) addSections(table []pe.SectionHeader32, size int64) error {
	x.contents = int64(x.optional.SizeOfHeaders)
	free := uint64(x.optional.SizeOfHeaders) // the first address that no section has
	names := map[string]bool{}
	for i, header := range table {
		name, err := sectionName(header.Name)
		if err != nil {
			return malformed("its section %d: %v", i+1, err)
		}
		s := section{
			name: name, address: header.VirtualAddress, size: header.VirtualSize,
			offset: header.PointerToRawData, fileSize: header.SizeOfRawData, characteristics: header.Characteristics,
		}
		switch {
		case names[name]:
			return malformed("it has the section %s twice", name)
		case header.NumberOfRelocations != 0 || header.PointerToRelocations != 0 || header.NumberOfLineNumbers != 0 || header.PointerToLineNumbers != 0:
			return malformed("its section %s has relocations or line numbers", name)
		case s.size == 0 || s.fileSize == 0 || s.fileSize%x.optional.FileAlignment != 0:
			return malformed("its section %s has %d bytes in memory and %d in the file", name, s.size, s.fileSize)
		case int64(s.offset) != x.contents || x.contents+int64(s.fileSize) > size:
			return malformed("its section %s is at byte %d and has %d bytes, where the one before ends at %d and the file at %d", name, s.offset, s.fileSize, x.contents, size)
		case uint64(s.address) < free || s.end() > uint64(x.optional.SizeOfImage):
			return malformed("its section %s is at the address %#x with %#x bytes, where free ones are %#x to %#x", name, s.address, s.size, free, x.optional.SizeOfImage)
		}
		names[name] = true
		x.sections = append(x.sections, s)
		x.contents += int64(s.fileSize)
		free = s.end()
	}
	return nil
}

// sectionName returns the name in a section header.
func sectionName(raw [8]byte) (string, error) {
	name := strings.TrimRight(string(raw[:]), "\x00")
	if name == "" {
		return "", errors.New("it has no name")
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c > '~' {
			return "", fmt.Errorf("it has the name %q", name)
		}
	}
	return name, nil
}

// checkEntry checks that the program starts in code that is in the file.
func (x *executable) checkEntry() error {
	entry := x.optional.AddressOfEntryPoint
	for _, s := range x.sections {
		if entry >= s.address && uint64(entry) < uint64(s.address)+uint64(min(s.size, s.fileSize)) && s.characteristics&pe.IMAGE_SCN_MEM_EXECUTE != 0 {
			return nil
		}
	}
	return malformed("it starts at the address %#x, where it has no code", entry)
}

// checkEnd checks that the file ends after the sections, or after certificates.
func (x *executable) checkEnd(size int64) error {
	if x.file.PointerToSymbolTable != 0 || x.file.NumberOfSymbols != 0 {
		return malformed("it has symbols")
	}
	table := x.optional.DataDirectory[pe.IMAGE_DIRECTORY_ENTRY_SECURITY]
	end := x.contents
	if table != (pe.DataDirectory{}) {
		// Here, and only here, a data directory has a place in the file.
		if int64(table.VirtualAddress) != x.contents || table.Size == 0 || table.Size%8 != 0 {
			return malformed("its certificates are %d bytes at byte %d, where the sections end at %d", table.Size, table.VirtualAddress, x.contents)
		}
		end += int64(table.Size)
		x.signed = true
	}
	if end != size {
		return malformed("it has %d bytes, where its headers account for %d", size, end)
	}
	return nil
}

// find returns the section of the name.
func (x *executable) find(name string) (section, bool) {
	for _, s := range x.sections {
		if s.name == name {
			return s, true
		}
	}
	return section{}, false
}
