package starlark

import (
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

func TestWorkspace(t *testing.T) { linttest.Clean(t, Check) }

func TestCheck(t *testing.T) {
	const good = "load(\":a.bzl\", \"a\")\n\na(\n    name = \"b\",\n    srcs = [\"c\"],\n)\n"
	linttest.Finds(t, Check, linttest.Tree{
		"BUILD.bazel": good, "WORKSPACE": good, "a/MODULE.bazel": "module(name = \"x\")\n", "a/b.bzl": "X = 1\n", "c": "x =1",
	})
	linttest.Finds(t, Check, linttest.Tree{
		"BUILD.bazel":  "load(\":a.bzl\", \"a\")\na(srcs = [\"c\"], name = \"b\",)\n",
		"MODULE.bazel": "module(name='x')\n",
		"WORKSPACE":    "workspace(name = \"x\")\n\n\n",
		"a/BUILD":      "a(\n",
		"b.bzl":        "X = [2,1]\n",
	},
		"BUILD.bazel:2: is not formatted; mend it: bazel run //tools/format",
		"MODULE.bazel:1: is not formatted",
		"WORKSPACE:2: is not formatted",
		"a/BUILD: is not Starlark",
		"b.bzl:1: is not formatted",
	)
	linttest.Refuses(t, Check, linttest.Tree{"README.md": ""}, "no file that this check looks at")
}
