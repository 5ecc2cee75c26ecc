package variables

import (
	"crypto/x509"
	"encoding/binary"
	"fmt"
)

// SecureBoot returns the variables that turn Secure Boot on, with a platform
// key, a key exchange key, and the certificates whose signatures start
// programs (UEFI Specification, "Secure Boot and Driver Signing").
func SecureBoot(platform, exchange *x509.Certificate, trusted ...*x509.Certificate) []Variable {
	const attributes = NonVolatile | BootServiceAccess | RuntimeAccess | TimeBasedAuthentication
	return []Variable{
		{"PK", Global, attributes, signatureList(platform)},
		{"KEK", Global, attributes, signatureList(exchange)},
		{"db", ImageSecurity, attributes, signatureList(trusted...)},
		// EDK II's own switch, which a person would find in its menus.
		{"SecureBootEnable", secureBootEnable, NonVolatile | BootServiceAccess, []byte{1}},
	}
}

// signatureList is an EFI_SIGNATURE_LIST for each certificate. Their owner is
// nobody, which the firmware doesn't look at.
func signatureList(certificates ...*x509.Certificate) []byte {
	var b []byte
	for _, c := range certificates {
		signature := len(GUID{}) + len(c.Raw)
		b = append(b, certificateX509[:]...)
		b = binary.LittleEndian.AppendUint32(b, uint32(28+signature))
		b = binary.LittleEndian.AppendUint32(b, 0)
		b = binary.LittleEndian.AppendUint32(b, uint32(signature))
		b = append(b, make([]byte, len(GUID{}))...)
		b = append(b, c.Raw...)
	}
	return b
}

// BootOption returns the variables that have the firmware first try to start
// the file at this path, such as `\vmlinuz`, on any file system that it finds,
// with these words as its command line.
func BootOption(path, commandLine string) []Variable {
	const attributes = NonVolatile | BootServiceAccess | RuntimeAccess
	file := encodeName(path)
	// A device path of one file, in the short form that stands for every
	// file system, and the node that ends it.
	devicePath := append(binary.LittleEndian.AppendUint16([]byte{4, 4}, uint16(4+len(file))), file...)
	devicePath = append(devicePath, 0x7f, 0xff, 4, 0)
	option := binary.LittleEndian.AppendUint32(nil, 1)
	option = binary.LittleEndian.AppendUint16(option, uint16(len(devicePath)))
	option = append(option, encodeName("test")...)
	option = append(option, devicePath...)
	option = append(option, encodeName(commandLine)...)
	const number = 1
	return []Variable{
		{fmt.Sprintf("Boot%04X", number), Global, attributes, option},
		{"BootOrder", Global, attributes, []byte{number, 0}},
	}
}
