package efivar

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Firmware is how a machine was started. Its values are names for people.
type Firmware string

// The ways to start a machine that are told apart.
const (
	// None is a machine that no UEFI firmware started: one with a BIOS, a virtual
	// machine whose host started the kernel, or a container.
	None Firmware = "no UEFI"
	// SecureBootOn and SecureBootOff are machines with UEFI.
	SecureBootOn  Firmware = "UEFI, Secure Boot on"
	SecureBootOff Firmware = "UEFI, Secure Boot off"
	// Unknown is a machine with UEFI whose variables can't be read.
	Unknown Firmware = "UEFI, Secure Boot unknown"
)

// Boot tells how the machine was started; sysfs is where the file system of that name
// is mounted, as a rule /sys. With an error it is Unknown.
//
// Secure Boot is on if the firmware's variable SecureBoot is 1 and SetupMode is 0: in
// setup mode the firmware has no platform key and checks nothing. Firmware without
// the first of them doesn't have Secure Boot. Linux goes by the same rules
// (efi_get_secureboot_mode in include/linux/efi.h).
func Boot(sysfs string) (Firmware, error) {
	switch _, err := os.Stat(filepath.Join(sysfs, "firmware/efi")); {
	case errors.Is(err, os.ErrNotExist):
		return None, nil
	case err != nil:
		return Unknown, fmt.Errorf("look for UEFI: %w", err)
	}
	// Without efivarfs the folder is there, and empty: no variable is missing then.
	switch entries, err := os.ReadDir(variables(sysfs)); {
	case errors.Is(err, os.ErrNotExist), err == nil && len(entries) == 0:
		return Unknown, nil
	case err != nil:
		return Unknown, fmt.Errorf("list the EFI variables: %w", err)
	}
	secure, err := flag(sysfs, "SecureBoot")
	switch {
	case errors.Is(err, ErrNone):
		return SecureBootOff, nil
	case err != nil:
		return Unknown, err
	case !secure:
		return SecureBootOff, nil
	}
	setup, err := flag(sysfs, "SetupMode")
	switch {
	case err != nil:
		return Unknown, err
	case setup:
		return SecureBootOff, nil
	}
	return SecureBootOn, nil
}

// flag reads a variable that is a byte, 0 or 1.
func flag(sysfs, name string) (bool, error) {
	v, err := Read(sysfs, name, Global, 1)
	if err != nil {
		return false, err
	}
	if len(v.Data) != 1 {
		return false, fmt.Errorf("read the EFI variable %s: %w", name, ErrSize)
	}
	return v.Data[0] == 1, nil
}
