// Package files reads and writes the files that pcctl stores and fetches: trees
// to be stored, names of objects as paths, atomic replacement, and streams that
// an interruption can end.
package files

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// windowsReserved are names that Windows takes for devices in every folder.
var windowsReserved = []string{"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"}

// windowsPorts are the numbers of serial and parallel ports.
var windowsPorts = strings.Split("0123456789¹²³", "")

// LocalPath returns the path, relative to a directory and with the separators
// of this system, that an object's name stands for. It refuses a name that
// could lead out of the directory, or that the system (goos, as in
// runtime.GOOS) would take for something else than a file of that name.
func LocalPath(name, goos string) (string, error) {
	if name == "" {
		return "", fmt.Errorf("an empty name is no file name")
	}
	for element := range strings.SplitSeq(name, "/") {
		if err := checkElement(element, goos); err != nil {
			return "", fmt.Errorf("%q can't be a file below a directory: %w; fetch it alone under another name", name, err)
		}
	}
	return filepath.FromSlash(name), nil
}

// checkElement checks what is between two slashes of a name.
func checkElement(element, goos string) error {
	switch {
	case element == "" || element == "." || element == "..":
		return fmt.Errorf("it has an element %q", element)
	case strings.ContainsRune(element, 0):
		return fmt.Errorf("it has a NUL byte")
	case goos != "windows":
		return nil
	case strings.ContainsAny(element, `\:<>"|?*`) || strings.ContainsFunc(element, func(r rune) bool { return r < ' ' }):
		return fmt.Errorf("%q has a character that Windows doesn't allow", element)
	case strings.HasSuffix(element, ".") || strings.HasSuffix(element, " "):
		return fmt.Errorf("%q ends with a dot or a space, which Windows drops", element)
	}
	stem, _, _ := strings.Cut(element, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	if slices.Contains(windowsReserved, stem) {
		return fmt.Errorf("%q is a device on Windows", element)
	}
	for _, prefix := range []string{"COM", "LPT"} {
		number, ok := strings.CutPrefix(stem, prefix)
		if ok && slices.Contains(windowsPorts, number) {
			return fmt.Errorf("%q is a device on Windows", element)
		}
	}
	return nil
}

// Folds tells whether the usual file systems of a system (as in runtime.GOOS)
// take names that differ only in upper and lower case for the same file.
func Folds(goos string) bool { return goos == "windows" || goos == "darwin" }
