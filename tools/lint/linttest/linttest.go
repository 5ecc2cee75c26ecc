// Package linttest runs checks in tests: on this source tree, and on small
// made-up ones.
package linttest

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"powercloud.unidatum.com/tools/lint"
)

// Clean fails the test, once a problem, unless the check finds nothing wrong
// with this source tree.
//
// Bazel doesn't know what the check reads, so the test's target carries the
// tag "external", which has it run every time, and "local", which has it see
// the tree; its data names //:go.mod, by which the tree is found.
func Clean(t *testing.T, check lint.Check) {
	t.Helper()
	root, err := lint.Root()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Error(p)
	}
}

// Tree is a tree of files in memory: their contents by name.
type Tree map[string]string

// FS is the tree as a check sees it.
func (tree Tree) FS() fs.FS {
	files := make(fstest.MapFS, len(tree))
	for name, content := range tree {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return files
}

// Finds fails the test unless the check finds as many problems in the tree as
// there are texts, in this order, each holding its text in its one line. Every
// problem must name a file and a way to mend it.
func Finds(t *testing.T, check lint.Check, tree Tree, texts ...string) {
	t.Helper()
	problems, err := check(tree.FS())
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range problems {
		line := p.String()
		if p.File == "" || p.Mend == "" || strings.Contains(line, "\n") {
			t.Errorf("not one line with a file and a way to mend it: %q", line)
		}
		if i >= len(texts) {
			t.Errorf("one problem too many: %s", line)
		} else if !strings.Contains(line, texts[i]) {
			t.Errorf("problem %d is %q, want one with %q", i, line, texts[i])
		}
	}
	for _, text := range texts[min(len(problems), len(texts)):] {
		t.Errorf("no problem with %q was found", text)
	}
}

// Refuses fails the test unless the check returns an error with this text for
// the tree: it must not pass because it had nothing to look at.
func Refuses(t *testing.T, check lint.Check, tree Tree, text string) {
	t.Helper()
	problems, err := check(tree.FS())
	if err == nil || !strings.Contains(err.Error(), text) {
		t.Errorf("the check returned %v and the error %v, want an error with %q", problems, err, text)
	}
}
