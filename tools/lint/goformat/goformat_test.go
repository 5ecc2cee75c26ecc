package goformat

import (
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

func TestWorkspace(t *testing.T) { linttest.Clean(t, Check) }

func TestCheck(t *testing.T) {
	const good = "package a\n\nvar b = 1\n"
	linttest.Finds(t, Check, linttest.Tree{"a.go": good, "b/testdata/c.go": good, "d.txt": "x  =1"})
	linttest.Finds(t, Check, linttest.Tree{
		"a.go":       good,
		"b/space.go": "package a\n\nvar  b=1\n",
		"b/tail.go":  "package a\n\n\n",
		"c.go":       "package a\n\nvar b = = 1\n",
	},
		"b/space.go:3: is not formatted; mend it: bazel run //tools/format",
		"b/tail.go:2: is not formatted",
		"c.go: is not Go: 3:9",
	)
	linttest.Refuses(t, Check, linttest.Tree{"README.md": ""}, "no file that this check looks at")
}
