package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"powercloud.unidatum.com/tests/machine/initramfs"
	"powercloud.unidatum.com/tests/machine/kernel"
)

// addFiles adds the test and its runfiles to the machine's files.
func addFiles(archive *initramfs.Archive) error {
	program, err := runfile("KERNEL_TEST_PROGRAM")
	if err != nil {
		return err
	}
	// It is there even where there is no file in it.
	archive.Folder(inMachine(os.Getenv("KERNEL_TEST_FOLDER")))
	return errors.Join(
		archive.File(inMachine(os.Getenv("KERNEL_TEST_PROGRAM")), program),
		addRunfiles(archive),
	)
}

// inMachine is where a runfile is in the machine.
func inMachine(name string) string {
	return path.Join(kernel.Runfiles, os.Getenv("TEST_WORKSPACE"), name)
}

// newTask is what the machine is told to do.
func newTask(arguments []string) kernel.Task {
	task := kernel.Task{
		Program:   inMachine(os.Getenv("KERNEL_TEST_PROGRAM")),
		Arguments: arguments,
		Folder:    inMachine("."),
		Environment: []string{
			"PATH=/bin:/sbin",
			"HOME=/tmp",
			"TMPDIR=/tmp",
			"TEST_TMPDIR=/tmp",
			"TEST_SRCDIR=" + kernel.Runfiles,
			"RUNFILES_DIR=" + kernel.Runfiles,
			"XML_OUTPUT_FILE=" + kernel.ReportFile,
			// rules_go's tests then start in their package's folder.
			"GO_TEST_RUN_FROM_BAZEL=1",
		},
	}
	forward := []string{"TEST_WORKSPACE", "TEST_TARGET", "TEST_RANDOM_SEED", "TESTBRIDGE_TEST_ONLY", "TESTBRIDGE_TEST_RUNNER_FAIL_FAST", "GO_TEST_WRAP", "GO_TEST_WRAP_TESTV"}
	if names := os.Getenv("KERNEL_TEST_FORWARD"); names != "" {
		forward = append(forward, strings.Split(names, ",")...)
	}
	for _, name := range forward {
		if value, ok := os.LookupEnv(name); ok {
			task.Environment = append(task.Environment, name+"="+value)
		}
	}
	return task
}

// addRunfiles adds the files that the test needs, but for the test itself,
// which is there already.
func addRunfiles(archive *initramfs.Archive) error {
	list, err := runfile("KERNEL_TEST_FILES")
	if err != nil {
		return err
	}
	content, err := os.ReadFile(list)
	if err != nil {
		return fmt.Errorf("read the list of runfiles: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		name := strings.TrimSuffix(line, "\n")
		if name == os.Getenv("KERNEL_TEST_PROGRAM") {
			continue
		}
		source := filepath.Join(os.Getenv("TEST_SRCDIR"), os.Getenv("TEST_WORKSPACE"), name)
		if err := archive.Tree(inMachine(name), source); err != nil {
			return err
		}
	}
	return nil
}
