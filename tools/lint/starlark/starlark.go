// Package starlark checks that every Starlark file, BUILD files and MODULE and
// WORKSPACE included, is formatted as buildifier formats it.
package starlark

import (
	"fmt"
	"io/fs"
	"path"

	"github.com/bazelbuild/buildtools/build"

	"powercloud.unidatum.com/tools/lint"
)

// Is tells whether the file of this name is written in Starlark.
func Is(name string) bool {
	switch path.Base(name) {
	case "BUILD", "BUILD.bazel", "WORKSPACE", "WORKSPACE.bazel", "WORKSPACE.bzlmod", "MODULE.bazel", "REPO.bazel":
		return true
	}
	return path.Ext(name) == ".bzl"
}

// Source returns the content of a Starlark file formatted; which of its
// dialects it is follows from its name.
func Source(name string, content []byte) ([]byte, error) {
	file, err := build.Parse(name, content)
	if err != nil {
		return nil, fmt.Errorf("is not Starlark: %w", err)
	}
	build.Rewrite(file)
	return build.Format(file), nil
}

// Check finds the Starlark files that buildifier would change.
func Check(tree fs.FS) ([]lint.Problem, error) {
	return lint.Unformatted(tree, Is, Source)
}
