package lint

import (
	"os"
	"path/filepath"
	"strings"
)

// Runfile returns where a file of another repository lies for a program or a
// test that Bazel runs, given what $(rootpath) says of it: Bazel before version
// 8 puts a link below "external/", and all versions put it beside the main
// repository. The result is absolute.
func Runfile(path string) (string, error) {
	// A test may have been started in its package's folder.
	if runfiles := os.Getenv("TEST_SRCDIR"); runfiles != "" {
		path = filepath.Join(runfiles, os.Getenv("TEST_WORKSPACE"), path)
	}
	if _, err := os.Stat(path); err != nil {
		path = strings.Replace(path, "external/", "../", 1)
	}
	return filepath.Abs(path)
}
