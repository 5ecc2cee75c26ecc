// Command format mends the source tree where a program can: it formats every
// Go and Starlark file in place and prints the names of those that it changed.
//
//	bazel run //tools/format
package main

import (
	"fmt"
	"io"
	"os"

	"powercloud.unidatum.com/tools/lint"
	"powercloud.unidatum.com/tools/lint/goformat"
	"powercloud.unidatum.com/tools/lint/starlark"
)

func main() {
	root, err := lint.Root()
	if err == nil {
		err = formatTree(root, os.Stdout)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "format: %v\n", err)
		os.Exit(1)
	}
}

// formatTree formats the files of the tree and prints those that it changed.
func formatTree(root string, out io.Writer) error {
	for _, language := range []struct {
		match  func(name string) bool
		format lint.Formatter
	}{
		{goformat.Is, goformat.Source},
		{starlark.Is, starlark.Source},
	} {
		changed, err := lint.Rewrite(root, language.match, language.format)
		for _, name := range changed {
			fmt.Fprintln(out, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
