package fuzzseeds

import (
	"testing"

	"powercloud.unidatum.com/tools/lint/linttest"
)

func TestWorkspace(t *testing.T) { linttest.Clean(t, Check) }

// target is a test file with one fuzz target.
func target(name, body string) string {
	return "package a\n\nimport \"testing\"\n\nfunc " + name + "(f *testing.F) {\n" + body + "\n\tf.Fuzz(func(t *testing.T, b []byte) {})\n}\n"
}

const seed = "go test fuzz v1\n[]byte(\"x\")\n"

func TestSeeded(t *testing.T) {
	linttest.Finds(t, Check, linttest.Tree{
		"a/a_test.go":                 target("FuzzFiles", ""),
		"a/testdata/fuzz/FuzzFiles/1": seed,
		"b/b_test.go":                 target("FuzzAdd", "\tf.Add([]byte{1})"),
		"c/c_test.go":                 target("FuzzLoop", "\tfor _, s := range []string{\"x\"} {\n\t\tf.Add([]byte(s))\n\t}"),
		"d/d_test.go":                 "package d\n\nfunc FuzzyHelper() {}\n\nfunc Fuzz(t *testing.T) {}\n",
	})
}

func TestUnseeded(t *testing.T) {
	linttest.Finds(t, Check, linttest.Tree{
		"a/a_test.go":                target("FuzzNone", ""),
		"b/b_test.go":                target("FuzzMoved", "\tfor _, s := range files() {\n\t\tf.Add(s)\n\t}"),
		"b/testdata/fuzz/FuzzOld/1":  seed,
		"b/testdata/fuzz/FuzzOld/2":  seed,
		"c/c_test.go":                target("FuzzMaybe", "\tif x {\n\t\tf.Add(s)\n\t}"),
		"d/d_test.go":                target("FuzzEmpty", "\tfor _, s := range []string{} {\n\t\tf.Add(s)\n\t}"),
		"e/e_test.go":                target("FuzzRaw", ""),
		"e/testdata/fuzz/FuzzRaw/1":  "x",
		"f/f_test.go":                target("FuzzOther", "\tg.Add(1)"),
		"g/testdata/fuzz/FuzzGone/1": seed,
	},
		"a/a_test.go:5: FuzzNone has no seed that surely exists; mend it: put seeds into a/testdata/fuzz/FuzzNone,",
		"b/b_test.go:5: FuzzMoved has no seed",
		"c/c_test.go:5: FuzzMaybe has no seed",
		"d/d_test.go:5: FuzzEmpty has no seed",
		"e/testdata/fuzz/FuzzRaw/1:1: is not a seed",
		"f/f_test.go:5: FuzzOther has no seed",
		"b/testdata/fuzz/FuzzOld: holds seeds of a fuzz target that doesn't exist",
		"g/testdata/fuzz/FuzzGone: holds seeds of a fuzz target that doesn't exist",
	)
}

func TestNothingToCheck(t *testing.T) {
	linttest.Refuses(t, Check, linttest.Tree{"a.go": ""}, "no file that this check looks at")
	linttest.Refuses(t, Check, linttest.Tree{"a_test.go": "package a\n"}, "no fuzz target")
	linttest.Refuses(t, Check, linttest.Tree{"a_test.go": "package"}, "look for fuzz targets: a_test.go:1:8")
}
