package debian

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"powercloud.unidatum.com/tools/lint"
)

// TestPackageOfThisBuild runs a program from the set that this very build
// declares.
func TestPackageOfThisBuild(t *testing.T) {
	files := strings.Fields(os.Getenv("HELLO"))
	if len(files) == 0 {
		t.Skip("Bazel unpacks the package for this test: bazel test //tools/debian:all")
	}
	for _, file := range files {
		if !strings.HasSuffix(file, "/packages/hello/usr/bin/hello") {
			continue
		}
		program, err := lint.Runfile(file)
		if err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(program, "--greeting=unpacked").CombinedOutput(); err != nil || string(out) != "unpacked\n" {
			t.Errorf("it printed %q, %v", out, err)
		}
		return
	}
	t.Errorf("the program is not among the package's files: %q", files)
}
