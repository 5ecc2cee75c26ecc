package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Formatter returns the content of the file of this name as it should be. An
// error says what is wrong with a content that it can't read, as the rest of a
// line that begins with the file's name.
type Formatter func(name string, content []byte) ([]byte, error)

// Unformatted finds the files, among those that match, that the formatter
// would change or can't read.
func Unformatted(tree fs.FS, match func(name string) bool, format Formatter) ([]Problem, error) {
	names, err := Files(tree, match)
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, name := range names {
		content, err := fs.ReadFile(tree, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // Somebody is at work in the tree.
		}
		if err != nil {
			return nil, fmt.Errorf("read a source file: %w", err)
		}
		want, err := format(name, content)
		if err != nil {
			what := strings.ReplaceAll(err.Error(), "\n", " ")
			problems = append(problems, Problem{File: name, What: what, Mend: "correct the file by hand"})
			continue
		}
		if line := firstDifference(content, want); line > 0 {
			problems = append(problems, Problem{File: name, Line: line, What: "is not formatted", Mend: Format})
		}
	}
	return problems, nil
}

// firstDifference returns the number of the first line in which two texts
// differ, counted from 1, or 0 when they are equal.
func firstDifference(a, b []byte) int {
	if bytes.Equal(a, b) {
		return 0
	}
	line := 1
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '\n' {
			line++
		}
	}
	return line
}

// Rewrite formats the files below root that match, and returns the names of
// those that it changed. A file that can't be formatted doesn't keep it from
// the others; the error names every such file.
func Rewrite(root string, match func(name string) bool, format Formatter) ([]string, error) {
	names, err := Files(os.DirFS(root), match)
	if err != nil {
		return nil, err
	}
	var changed []string
	var failed []error
	for _, name := range names {
		rewritten, err := rewrite(filepath.Join(root, filepath.FromSlash(name)), name, format)
		if err != nil {
			failed = append(failed, err)
		}
		if rewritten {
			changed = append(changed, name)
		}
	}
	return changed, errors.Join(failed...)
}

// rewrite formats the file at path, whose name in the tree is name.
func rewrite(path, name string, format Formatter) (bool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return false, fmt.Errorf("format a file: %w", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false, fmt.Errorf("format a file: %w", err)
	}
	want, err := format(name, content)
	if err != nil {
		return false, fmt.Errorf("%s: %w", name, err)
	}
	if bytes.Equal(content, want) {
		return false, nil
	}
	if err := os.WriteFile(path, want, info.Mode()); err != nil {
		return false, fmt.Errorf("format a file: %w", err)
	}
	return true, nil
}
