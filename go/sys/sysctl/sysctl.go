// Package sysctl reads and sets the kernel's parameters below /proc/sys.
package sysctl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Root is where the kernel shows its parameters.
const Root = "/proc/sys"

// Setting is one parameter and the value that it is to have.
type Setting struct {
	// Name has slashes, as the file below /proc/sys: names of network
	// interfaces may have dots.
	Name  string
	Value string
	// Reason says why, for people.
	Reason string
}

// ErrAbsent is wrapped by the error for a parameter that the kernel hasn't got.
var ErrAbsent = errors.New("the kernel has no such parameter")

// Set gives one parameter below root a value.
func Set(root, name, value string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("set the kernel's parameter %q: its name must be a relative path", name)
	}
	file, err := os.OpenFile(filepath.Join(root, filepath.FromSlash(name)), os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("set the kernel's parameter %s: %w", name, ErrAbsent)
	}
	if err == nil {
		// Some parameters take a line, and refuse it without its end.
		_, err = file.WriteString(value + "\n")
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("set the kernel's parameter %s to %s: %w", name, value, err)
	}
	return nil
}

// Get returns a parameter's value without the white space around it.
func Get(root, name string) (string, error) {
	if !fs.ValidPath(name) {
		return "", fmt.Errorf("read the kernel's parameter %q: its name must be a relative path", name)
	}
	value, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the kernel's parameter %s: %w", name, ErrAbsent)
	}
	if err != nil {
		return "", fmt.Errorf("read the kernel's parameter %s: %w", name, err)
	}
	return strings.TrimSpace(string(value)), nil
}

// Apply sets every parameter of a table, whatever becomes of the others, and
// returns one error for each that it couldn't set.
func Apply(root string, settings []Setting) []error {
	var failures []error
	for _, s := range settings {
		if err := Set(root, s.Name, s.Value); err != nil {
			failures = append(failures, err)
		}
	}
	return failures
}
