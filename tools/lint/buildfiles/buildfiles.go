// Package buildfiles checks that the BUILD files of our own Go code are what
// gazelle writes for it.
package buildfiles

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"powercloud.unidatum.com/tools/lint"
)

// Mend is the command that brings the generated files up to date.
const Mend = "bazel run //tools/generate"

// folders are the parts of the tree that gazelle looks after.
var folders = [...]string{"disk", "go", "rootfs", "tests", "tools"}

// Gazelle is the command and what it must know.
type Gazelle struct {
	// Command is the path of the gazelle command.
	Command string
	// Repositories is the path of a file that declares the repository of
	// each Go module, as gazelle's -repo_config takes it.
	Repositories string
	// Prefix is the path of the tree's own Go module.
	Prefix string
}

// Update writes the BUILD files of the tree.
func (g Gazelle) Update(root string) error {
	_, err := g.run(root, "fix")
	return err
}

// Stale returns a problem for each BUILD file that Update would change. It
// changes nothing.
func (g Gazelle) Stale(root string) ([]lint.Problem, error) {
	diff, err := g.run(root, "diff")
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && len(diff) > 0) {
		return nil, err
	}
	var problems []lint.Problem
	for _, name := range changed(diff) {
		problems = append(problems, lint.Problem{File: name, What: "it isn't what gazelle writes", Mend: Mend})
	}
	if len(diff) > 0 && len(problems) == 0 {
		return nil, fmt.Errorf("gazelle printed a difference that names no file: %q", diff)
	}
	return problems, nil
}

// run runs gazelle in one of its modes and returns what it prints.
func (g Gazelle) run(root, mode string) ([]byte, error) {
	arguments := []string{
		"update", "-mode", mode, "-go_prefix", g.Prefix, "-proto", "disable_global",
		"-repo_root", root, "-repo_config", g.Repositories,
	}
	for _, folder := range folders {
		if info, err := os.Stat(filepath.Join(root, folder)); err == nil && info.IsDir() {
			arguments = append(arguments, filepath.Join(root, folder))
		}
	}
	command := exec.Command(g.Command, arguments...)
	command.Dir = root
	// It must not ask a module proxy for packages that it doesn't know, such
	// as those that the standard library got lately.
	command.Env = append(os.Environ(), "GOPROXY=off", "GOTOOLCHAIN=local", "GOFLAGS=-mod=mod")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	output, err := command.Output()
	if err != nil {
		err = fmt.Errorf("running gazelle: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return output, err
}

// changedFile matches the line of a difference that names a changed file.
var changedFile = regexp.MustCompile(`(?m)^\+\+\+ (\S+)`)

// changed returns the names of the files in a difference.
func changed(diff []byte) []string {
	var names []string
	for _, match := range changedFile.FindAllSubmatch(diff, -1) {
		names = append(names, string(match[1]))
	}
	slices.Sort(names)
	return slices.Compact(names)
}
