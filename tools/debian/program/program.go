// Package program runs programs of unpacked Debian packages with the loader and
// the libraries of those packages, whatever the machine has.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"powercloud.unidatum.com/tools/lint"
)

// triplet is the name of the folders of libraries for the packages' architecture.
// Programs run where the build does, which is on amd64.
const triplet = "x86_64-linux-gnu"

// Command returns a command that runs a program of unpacked packages. The folder
// has one folder a package, as debian_packages unpacks them; among them must be
// everything that the program's package depends on. The program is named by its
// package and its path in that: "xz-utils/usr/bin/xz". Its environment is empty.
func Command(ctx context.Context, packages, program string, arguments ...string) (*exec.Cmd, error) {
	packages, err := filepath.Abs(packages)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", program, err)
	}
	loader := filepath.Join(packages, "libc6", "lib", triplet, "ld-linux-x86-64.so.2")
	path := filepath.Join(packages, program)
	for _, file := range []string{loader, path} {
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("run %s: %w", program, err)
		}
	}
	var libraries []string
	for _, folder := range []string{"lib", "usr/lib"} {
		found, err := filepath.Glob(filepath.Join(packages, "*", folder, triplet))
		if err != nil {
			return nil, fmt.Errorf("run %s: %w", program, err)
		}
		libraries = append(libraries, found...)
	}
	command := exec.CommandContext(ctx, loader, append([]string{"--inhibit-cache", "--library-path", strings.Join(libraries, ":"), path}, arguments...)...)
	command.Env = []string{"LC_ALL=C.UTF-8"}
	return command, nil
}

// Packages returns the folder of unpacked packages in which a program is, named as
// Command takes it, given what $(rootpaths) says of their files. Without that, which
// only Bazel has, ok is false.
func Packages(files, program string) (folder string, ok bool, err error) {
	for _, file := range strings.Fields(files) {
		if found, ok := strings.CutSuffix(file, "/"+program); ok {
			folder, err := lint.Runfile(found)
			return folder, err == nil, err
		}
	}
	return "", false, nil
}

// Explain returns the error of a command that failed with the last line that it
// wrote to its standard error.
func Explain(err error, stderr string) error {
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return fmt.Errorf("%w: %s", err, last)
	}
	return err
}
