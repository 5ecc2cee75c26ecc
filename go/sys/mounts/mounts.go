// Package mounts mounts the kernel's own file systems and the ones in memory, as
// a table says.
package mounts

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is one line of the table.
type Mount struct {
	// Target is where, and Type the kernel's name for the kind of file system.
	Target, Type string
	// Flags are MS_ flags of mount(2).
	Flags uintptr
	// Options is the file system's own option string.
	Options string
	// Mode is the mode of the target when it must be created first.
	Mode os.FileMode
	// Optional says that a kernel or a machine without this file system is
	// fine: its failure is reported as an ErrAbsent.
	Optional bool
}

// ErrAbsent is wrapped by the error for an Optional mount that isn't to be had.
var ErrAbsent = errors.New("not on this machine")

// All mounts the whole table in its order. It goes on after a failure; the error
// joins one for each mount that failed.
func All(table []Mount) error {
	var failures []error
	for _, m := range table {
		failures = append(failures, m.Do())
	}
	return errors.Join(failures...)
}

// Do mounts one line. A target that already has this very file system on it is
// left as it is, so that PID 1 may find /dev mounted by the kernel.
func (m Mount) Do() error {
	if err := os.MkdirAll(m.Target, m.Mode); err != nil {
		return m.failure(err)
	}
	switch mounted, err := is(m.Target, m.Type); {
	case err != nil:
		return m.failure(err)
	case mounted:
		return nil
	}
	if err := unix.Mount(m.Type, m.Target, m.Type, m.Flags, m.Options); err != nil {
		return m.failure(err)
	}
	return nil
}

func (m Mount) failure(err error) error {
	absent := errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EPERM) ||
		errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENXIO)
	if m.Optional && absent {
		err = fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	return fmt.Errorf("mount %s at %s: %w", m.Type, m.Target, err)
}

// is tells whether a file system of this type is mounted at the target. Before
// /proc is mounted nothing is known, and it says no.
func is(target, kind string) (bool, error) {
	table, err := os.ReadFile("/proc/self/mounts")
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return find(string(table), target) == kind, nil
}

// find returns the type of the topmost mount at a target, "" without one.
func find(table, target string) string {
	kind := ""
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) >= 3 && fields[1] == target {
			kind = fields[2]
		}
	}
	return kind
}

// Targets returns where something is mounted, in the order in which it was
// mounted: unmount from the end.
func Targets() ([]string, error) {
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return nil, fmt.Errorf("list what is mounted: %w", err)
	}
	var targets []string
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) >= 3 {
			targets = append(targets, unescape(fields[1]))
		}
	}
	return targets, nil
}

// unescape undoes the octal escapes of spaces and the like in /proc/self/mounts.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
