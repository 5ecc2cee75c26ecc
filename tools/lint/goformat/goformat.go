// Package goformat checks that every Go file is formatted as gofmt formats it.
package goformat

import (
	"fmt"
	"go/format"
	"io/fs"

	"powercloud.unidatum.com/tools/lint"
)

// Is tells whether the file of this name is a Go file.
func Is(name string) bool { return lint.Extension(".go")(name) }

// Source returns the content of a Go file formatted.
func Source(_ string, content []byte) ([]byte, error) {
	formatted, err := format.Source(content)
	if err != nil {
		return nil, fmt.Errorf("is not Go: %w", err)
	}
	return formatted, nil
}

// Check finds the Go files that gofmt would change.
func Check(tree fs.FS) ([]lint.Problem, error) {
	return lint.Unformatted(tree, Is, Source)
}
