// Package efivar reads the variables of a machine's UEFI firmware, and tells from
// them whether Secure Boot is on.
//
// The kernel shows them below /sys/firmware/efi/efivars, where efivarfs is mounted:
// see its Documentation/filesystems/efivarfs.rst, and the UEFI specification 2.10,
// sections 3.3 and 8.2. A machine that wasn't started by UEFI has none.
//
// The firmware says so itself: it is no proof for anybody else.
package efivar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Global is the GUID of the variables that the UEFI specification defines.
const Global = "8be4df61-93ca-11d2-aa0d-00e098032b8c"

// attributesSize is the size in bytes of the attributes, which come before the data.
const attributesSize = 4

var (
	// ErrNone says that there is no variable of that name.
	ErrNone = errors.New("the firmware has no such variable")
	// ErrSize says that a variable has another size than such a variable can have.
	ErrSize = errors.New("the variable has a wrong size")
)

// Attributes are what the firmware says of how it keeps a variable.
type Attributes uint32

// Some of the attributes.
const (
	NonVolatile     Attributes = 1 << 0
	BootServices    Attributes = 1 << 1
	RuntimeServices Attributes = 1 << 2
)

// Variable is a variable's content.
type Variable struct {
	Attributes Attributes
	Data       []byte
}

// Read reads a variable by its name and the GUID of who defined it, in lower case. One
// with more bytes of data than limit is an error that wraps ErrSize, one that doesn't
// exist an error that wraps ErrNone. Sysfs is where the file system of that name is
// mounted, as a rule /sys.
func Read(sysfs, name, vendor string, limit int) (Variable, error) {
	v, err := read(sysfs, name+"-"+vendor, limit)
	if err != nil {
		return Variable{}, fmt.Errorf("read the EFI variable %s: %w", name, err)
	}
	return v, nil
}

func read(sysfs, file string, limit int) (Variable, error) {
	f, err := os.OpenInRoot(variables(sysfs), file)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Variable{}, ErrNone
	case err != nil:
		return Variable{}, err
	}
	// One byte more than a variable may have shows that it has too many.
	b, err := io.ReadAll(io.LimitReader(f, attributesSize+int64(limit)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return Variable{}, err
	}
	return parse(b, limit)
}

func parse(b []byte, limit int) (Variable, error) {
	if len(b) < attributesSize || len(b)-attributesSize > limit {
		return Variable{}, ErrSize
	}
	return Variable{Attributes(binary.LittleEndian.Uint32(b)), b[attributesSize:]}, nil
}

// variables is the folder of the variables.
func variables(sysfs string) string { return filepath.Join(sysfs, "firmware/efi/efivars") }
