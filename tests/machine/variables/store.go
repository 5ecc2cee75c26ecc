// Package variables reads and writes the store of UEFI variables that the
// firmware of a virtual machine keeps in its second flash device, so that a
// machine starts with chosen Secure Boot keys and boot options, and a test can
// read what the machine has stored. The format is EDK II's authenticated
// variable store (MdeModulePkg/Include/Guid/VariableFormat.h) in a firmware
// volume (UEFI Platform Initialization Specification, volume 3).
package variables

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"unicode/utf16"
)

// Attributes of a variable (UEFI Specification, GetVariable).
const (
	NonVolatile       = 0x01
	BootServiceAccess = 0x02
	RuntimeAccess     = 0x04
	// TimeBasedAuthentication has the firmware accept only signed changes.
	TimeBasedAuthentication = 0x20
)

// A GUID is written in a store as UEFI does: its first three parts are
// little-endian.
type GUID [16]byte

// NewGUID makes a GUID of its five parts as they are usually written.
func NewGUID(a uint32, b, c uint16, d uint16, e uint64) GUID {
	var g GUID
	binary.LittleEndian.PutUint32(g[0:], a)
	binary.LittleEndian.PutUint16(g[4:], b)
	binary.LittleEndian.PutUint16(g[6:], c)
	binary.BigEndian.PutUint64(g[8:], e)
	binary.BigEndian.PutUint16(g[8:], d)
	return g
}

// Vendors of variables, and formats.
var (
	// Global has the variables that the UEFI Specification defines.
	Global = NewGUID(0x8be4df61, 0x93ca, 0x11d2, 0xaa0d, 0x00e098032b8c)
	// ImageSecurity has the signature databases.
	ImageSecurity = NewGUID(0xd719b2cb, 0x3d3a, 0x4596, 0xa3bc, 0xdad00e67656f)

	secureBootEnable  = NewGUID(0xf0a30bc7, 0xaf08, 0x4556, 0x99c4, 0x001009c93a44)
	certificateX509   = NewGUID(0xa5c059a1, 0x94e4, 0x4aa7, 0x87b5, 0xab155c2bf072)
	volumeOfVariables = NewGUID(0xfff12b8d, 0x7696, 0x4c8b, 0xa985, 0x2747075b4f50)
	authenticated     = NewGUID(0xaaf32c78, 0x947b, 0x439a, 0xa180, 0x2e144ec37792)
)

// A Variable is one variable that is kept while the machine is off.
type Variable struct {
	Name       string
	Vendor     GUID
	Attributes uint32
	Data       []byte
}

const (
	storeHeader    = 28
	variableHeader = 60
	startOfOne     = 0x55aa
	// A state begins with all bits set; each step of a variable's life
	// clears some.
	stateAdded     = 0x3f
	stateInDelete  = 0x3e // Replaced, if the change was not cut short.
	storeFormatted = 0x5a
	storeHealthy   = 0xfe
)

const (
	// The geometry of AAVMF's flash device: a block is what is erased at once.
	// The variables have the first, and the next two make changes safe.
	blockSize  = 1 << 18
	blocksUsed = 3
	// volumeHeader is the length of a firmware volume's header with one kind
	// of blocks.
	volumeHeader = 0x48
	// volumeAttributes say that the volume can be read and written, is mapped
	// into memory, and that erased bits are ones.
	volumeAttributes = 0xe36
)

// Format makes an empty store of a flash image that has only zeros where the
// store belongs, as AAVMF does itself when it starts. It leaves any other image
// alone.
func Format(image []byte) error {
	const used = blocksUsed * blockSize
	if len(image) < used {
		return nil // Whatever it is, it is not AAVMF's.
	}
	for _, b := range image[:used] {
		if b != 0 {
			return nil
		}
	}
	if len(image)%blockSize != 0 {
		return fmt.Errorf("format a store of UEFI variables: %d bytes are no whole number of blocks", len(image))
	}
	for i := range image[:used] {
		image[i] = 0xff
	}
	header := image[:volumeHeader]
	clear(header)
	copy(header[16:], volumeOfVariables[:])
	binary.LittleEndian.PutUint64(header[32:], used)
	copy(header[40:], "_FVH")
	binary.LittleEndian.PutUint32(header[44:], volumeAttributes)
	binary.LittleEndian.PutUint16(header[48:], volumeHeader)
	header[55] = 2 // The revision of the format.
	binary.LittleEndian.PutUint32(header[56:], uint32(len(image)/blockSize))
	binary.LittleEndian.PutUint32(header[60:], blockSize)
	// The header's 16-bit words add up to 0.
	var sum uint16
	for i := 0; i < volumeHeader; i += 2 {
		sum += binary.LittleEndian.Uint16(header[i:])
	}
	binary.LittleEndian.PutUint16(header[50:], -sum)
	store := image[volumeHeader:]
	clear(store[:storeHeader])
	copy(store, authenticated[:])
	binary.LittleEndian.PutUint32(store[16:], blockSize-volumeHeader)
	store[20], store[21] = storeFormatted, storeHealthy
	return nil
}

// area returns the part of a flash image that holds variables.
func area(image []byte) ([]byte, error) {
	if len(image) < 0x38 || !bytes.Equal(image[16:32], volumeOfVariables[:]) || !bytes.Equal(image[40:44], []byte("_FVH")) {
		return nil, errors.New("it is no firmware volume with variables")
	}
	start := int(binary.LittleEndian.Uint16(image[48:]))
	if start < 0x38 || start+storeHeader > len(image) {
		return nil, errors.New("the header of its firmware volume is longer than the image")
	}
	store := image[start:]
	size := int64(binary.LittleEndian.Uint32(store[16:]))
	switch {
	case !bytes.Equal(store[:16], authenticated[:]):
		return nil, errors.New("its variables are not in the authenticated format")
	case store[20] != storeFormatted || store[21] != storeHealthy:
		return nil, errors.New("its store of variables is not formatted")
	case size < storeHeader || size > int64(len(store)):
		return nil, errors.New("its store of variables is longer than the image")
	}
	return store[storeHeader:size], nil
}

// each calls do with every variable, valid or not, and its state, and returns
// where the free space begins.
func each(area []byte, do func(state byte, v Variable)) (int, error) {
	at := 0
	for at+variableHeader <= len(area) && binary.LittleEndian.Uint16(area[at:]) == startOfOne {
		header := area[at : at+variableHeader]
		nameSize := int64(binary.LittleEndian.Uint32(header[36:]))
		dataSize := int64(binary.LittleEndian.Uint32(header[40:]))
		body := area[at+variableHeader:]
		if nameSize < 2 || nameSize%2 != 0 || nameSize+dataSize > int64(len(body)) {
			return 0, fmt.Errorf("the variable at offset %d has a name of %d and data of %d bytes", at, nameSize, dataSize)
		}
		v := Variable{
			Name:       decodeName(body[:nameSize]),
			Attributes: binary.LittleEndian.Uint32(header[4:]),
			Data:       bytes.Clone(body[nameSize : nameSize+dataSize]),
		}
		copy(v.Vendor[:], header[44:])
		do(header[2], v)
		at = align(at + variableHeader + int(nameSize+dataSize))
	}
	return min(at, len(area)), nil
}

func align(n int) int { return (n + 3) &^ 3 }

// Read returns the variables in a flash image. Those that were deleted or
// replaced are not among them.
func Read(image []byte) ([]Variable, error) {
	store, err := area(image)
	if err != nil {
		return nil, fmt.Errorf("read a store of UEFI variables: %w", err)
	}
	var found []Variable
	_, err = each(store, func(state byte, v Variable) {
		if state != stateAdded && state != stateInDelete {
			return
		}
		found = slices.DeleteFunc(found, func(o Variable) bool { return o.Name == v.Name && o.Vendor == v.Vendor })
		found = append(found, v)
	})
	if err != nil {
		return nil, fmt.Errorf("read a store of UEFI variables: %w", err)
	}
	return found, nil
}

// Add writes variables that the flash image does not have yet into it. It is
// an error when they don't fit.
func Add(image []byte, variables ...Variable) error {
	present, err := Read(image)
	if err != nil {
		return err
	}
	store, err := area(image)
	if err != nil {
		return fmt.Errorf("write UEFI variables: %w", err)
	}
	at, err := each(store, func(byte, Variable) {})
	if err != nil {
		return fmt.Errorf("write UEFI variables: %w", err)
	}
	for _, v := range variables {
		if slices.ContainsFunc(present, func(o Variable) bool { return o.Name == v.Name && o.Vendor == v.Vendor }) {
			return fmt.Errorf("write UEFI variables: %s is there already", v.Name)
		}
		encoded := encode(v)
		if len(encoded) > len(store)-at {
			return fmt.Errorf("write UEFI variables: %s has %d bytes, of which %d are free", v.Name, len(encoded), len(store)-at)
		}
		copy(store[at:], encoded)
		at = min(align(at+len(encoded)), len(store))
		present = append(present, v)
	}
	return nil
}

// encode is a variable as a store has it.
func encode(v Variable) []byte {
	name := encodeName(v.Name)
	b := make([]byte, variableHeader, variableHeader+len(name)+len(v.Data))
	binary.LittleEndian.PutUint16(b[0:], startOfOne)
	b[2] = stateAdded
	binary.LittleEndian.PutUint32(b[4:], v.Attributes)
	if v.Attributes&TimeBasedAuthentication != 0 {
		// Any signed change is newer than the year 2000, January 1.
		binary.LittleEndian.PutUint16(b[16:], 2000)
		b[18], b[19] = 1, 1
	}
	binary.LittleEndian.PutUint32(b[36:], uint32(len(name)))
	binary.LittleEndian.PutUint32(b[40:], uint32(len(v.Data)))
	copy(b[44:], v.Vendor[:])
	return append(append(b, name...), v.Data...)
}

// encodeName is the text in UTF-16 with a zero at its end.
func encodeName(text string) []byte {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return append(b, 0, 0)
}

// decodeName is the text without the zero at its end.
func decodeName(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	if n := len(units); units[n-1] == 0 {
		units = units[:n-1]
	}
	return string(utf16.Decode(units))
}
