// Package built finds what Bazel builds for a test.
package built

import (
	"os"
	"testing"

	"powercloud.unidatum.com/tools/lint"
)

// Path returns the path of a file that Bazel builds for the test, by the variable that
// the test's rule sets to what $(rootpath) says of it. Without Bazel, the test is
// skipped.
func Path(t testing.TB, variable string) string {
	t.Helper()
	name := os.Getenv(variable)
	if name == "" {
		t.Skipf("only Bazel builds what %s names for this test: run it by `bazel test`", variable)
	}
	path, err := lint.Runfile(name)
	if err != nil {
		t.Fatalf("find what %s names: %v", variable, err)
	}
	return path
}

// Content returns the content of such a file.
func Content(t testing.TB, variable string) []byte {
	t.Helper()
	content, err := os.ReadFile(Path(t, variable))
	if err != nil {
		t.Fatal(err)
	}
	return content
}
