// Package lint is what the checks of the source tree share. A check is a
// function from a tree of files to the problems in it; each lives in a package
// of its own below this one, with a test that runs it on this very tree.
package lint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Format is the command that mends whatever can be mended by a program. It is
// run anywhere in the source tree.
const Format = "bazel run //tools/format"

// A Problem is one thing that is wrong in one file.
type Problem struct {
	// File is relative to the root of the tree and separated by slashes.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// What is wrong, as the rest of a line that begins with the file.
	What string
	// Mend is the command to run in the root of the tree, or, where no
	// command can help, what to do. It is never empty.
	Mend string
}

// String is the problem in one line, the way compilers write one.
func (p Problem) String() string {
	at := p.File
	if p.Line > 0 {
		at = fmt.Sprintf("%s:%d", at, p.Line)
	}
	return fmt.Sprintf("%s: %s; mend it: %s", at, p.What, p.Mend)
}

// A Check finds the problems of a tree of files. It returns an error when it
// could not look, and also when it found nothing to look at: a check that
// silently checks nothing is worse than none.
type Check func(tree fs.FS) ([]Problem, error)

// ErrNoFiles is returned by [Files] when no file matches.
var ErrNoFiles = errors.New("the source tree has no file that this check looks at: is it the right folder?")

// Files lists the files of the tree for which match is true of their path, in
// lexical order. It leaves out what is not source: hidden folders, Bazel's
// output links, and anything else that is neither a regular file nor a folder.
// When no file matches, the error is [ErrNoFiles].
func Files(tree fs.FS, match func(name string) bool) ([]string, error) {
	var names []string
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && name != ".":
			// Somebody is at work in the tree: it is gone, and no problem.
			return nil
		case err != nil:
			return err
		case entry.IsDir() && name != "." && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.Type().IsRegular() && match(name):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list the source tree: %w", err)
	}
	if len(names) == 0 {
		return nil, ErrNoFiles
	}
	slices.Sort(names)
	return names, nil
}

// Extension returns a match for [Files]: names that end in ext, such as ".go".
func Extension(ext string) func(string) bool {
	return func(name string) bool { return path.Ext(name) == ext }
}

// Root finds the root of the source tree: the folder named by Bazel when it
// runs a program, the folder that a test's go.mod is a link to when Bazel runs
// a test, and else the nearest folder with a go.mod, from here upwards.
func Root() (string, error) {
	if root := os.Getenv("BUILD_WORKSPACE_DIRECTORY"); root != "" {
		return root, nil
	}
	if runfiles := os.Getenv("TEST_SRCDIR"); runfiles != "" {
		link := filepath.Join(runfiles, os.Getenv("TEST_WORKSPACE"), "go.mod")
		mod, err := filepath.EvalSymlinks(link)
		if err != nil {
			return "", fmt.Errorf("find the source tree by its go.mod, which must be among the test's data: %w", err)
		}
		return filepath.Dir(mod), nil
	}
	return above("go.mod")
}

// above finds the nearest folder, from the working directory upwards, that
// holds a file of this name.
func above(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the source tree: %w", err)
	}
	for start := dir; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the source tree: no folder from %s upwards holds a %s", start, name)
		}
	}
}
