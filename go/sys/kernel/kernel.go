// Package kernel says which kernel runs, since when, and what it is locked down to.
package kernel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/bounded"
)

// Lockdown is what the kernel keeps even root from: see kernel_lockdown(7).
type Lockdown string

// The modes.
const (
	// None is also the mode of a kernel that can't be locked down.
	None Lockdown = "none"
	// Integrity keeps the running kernel from being changed.
	Integrity Lockdown = "integrity"
	// Confidentiality also keeps its memory from being read.
	Confidentiality Lockdown = "confidentiality"
	// Unknown is the mode if securityfs isn't mounted, or says nothing that is known.
	Unknown Lockdown = "unknown"
)

// maxLockdown is how many bytes the file of the modes has at most: there are three.
const maxLockdown = 4 << 10

// errLockdown says that the file of the modes isn't as the kernel writes it.
var errLockdown = errors.New("the kernel names no mode that is known")

// ReadLockdown reads the mode; sysfs is where the file system of that name is mounted,
// as a rule /sys, with securityfs in it. With an error it is Unknown.
func ReadLockdown(sysfs string) (Lockdown, error) {
	folder := filepath.Join(sysfs, "kernel/security")
	b, err := bounded.ReadFile(filepath.Join(folder, "lockdown"), maxLockdown)
	if errors.Is(err, os.ErrNotExist) {
		// Without securityfs the folder is empty.
		if entries, err := os.ReadDir(folder); err == nil && len(entries) > 0 {
			return None, nil
		}
		return Unknown, nil
	}
	if err != nil {
		return Unknown, fmt.Errorf("read the lockdown mode: %w", err)
	}
	mode, err := parseLockdown(string(b))
	if err != nil {
		return Unknown, fmt.Errorf("read the lockdown mode: %w", err)
	}
	return mode, nil
}

// parseLockdown reads what the kernel writes: all modes, the one that holds in
// brackets, as in "none [integrity] confidentiality".
func parseLockdown(text string) (Lockdown, error) {
	for word := range strings.FieldsSeq(text) {
		for _, mode := range []Lockdown{None, Integrity, Confidentiality} {
			if word == "["+string(mode)+"]" {
				return mode, nil
			}
		}
	}
	return Unknown, errLockdown
}

// Release returns the kernel's release, as uname -r prints it.
func Release() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("ask for the kernel's release: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}

// Uptime returns for how long the machine has run since it was started, the time
// during which it was suspended included.
func Uptime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("ask how long the machine has run: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
