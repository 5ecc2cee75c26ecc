// Update writes what is generated in the source tree: the BUILD files of our
// own Go code, by gazelle, and the list of Go modules in MODULE.bazel.
//
// `bazel run //tools/generate` runs it with the go command, so that it works
// whatever state the BUILD files are in.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"powercloud.unidatum.com/tools/lint"
	"powercloud.unidatum.com/tools/lint/buildfiles"
	"powercloud.unidatum.com/tools/lint/modules"
)

func main() {
	if err := update(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// update brings the tree up to date. The arguments are the path of gazelle and
// of the file that tells it the Go modules' repositories.
func update(arguments []string) error {
	if len(arguments) != 2 {
		return errors.New("it needs the paths of gazelle and of its list of repositories; use " + buildfiles.Mend)
	}
	root, err := lint.Root()
	if err != nil {
		return err
	}
	gazelle := buildfiles.Gazelle{Command: arguments[0], Repositories: arguments[1], Prefix: "powercloud.unidatum.com"}
	if err := gazelle.Update(root); err != nil {
		return err
	}
	return updateModule(root)
}

// updateModule writes the list of Go modules in MODULE.bazel.
func updateModule(root string) error {
	names, err := modules.Mentioned(os.DirFS(root))
	if err != nil {
		return err
	}
	path := filepath.Join(root, "MODULE.bazel")
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	after, err := modules.WithImports(before, names)
	if err != nil || bytes.Equal(before, after) {
		return err
	}
	return os.WriteFile(path, after, 0o644)
}
