package pstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"powercloud.unidatum.com/go/sys/bounded"
)

// Read returns the dumps in a folder, oldest first. A folder that isn't there
// has none: not every machine can keep a log.
func Read(dir string) ([]Dump, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what the kernel saved: %w", err)
	}
	var files []file
	var failures []error
	for _, entry := range entries[:min(len(entries), maxFiles)] {
		if !entry.Type().IsRegular() {
			continue
		}
		content, err := bounded.ReadFile(filepath.Join(dir, entry.Name()), maxPart)
		if err != nil {
			failures = append(failures, fmt.Errorf("read what the kernel saved: %w", err))
			continue
		}
		if f, ok := parse(entry.Name(), content); ok {
			files = append(files, f)
		}
	}
	return assemble(files), errors.Join(failures...)
}

// Remove takes a dump out of the store, which frees the space for the next.
func Remove(dir string, d Dump) error {
	var failures []error
	for _, name := range d.Files {
		if err := os.Remove(filepath.Join(dir, filepath.Base(name))); err != nil && !errors.Is(err, os.ErrNotExist) {
			failures = append(failures, fmt.Errorf("remove what the kernel saved: %w", err))
		}
	}
	return errors.Join(failures...)
}
