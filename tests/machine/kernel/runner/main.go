// Runner runs a Go test as the first program of a kernel in a virtual machine,
// prints what the test prints, writes its report where Bazel wants it, and ends
// with its status. The rule kernel_test makes a test of it; see package kernel.
//
// Its arguments are the test's. These variables say what to run; paths are
// those of runfiles:
//
//	KERNEL_TEST_ARCHITECTURE  amd64 or arm64
//	KERNEL_TEST_KERNEL        the kernel
//	KERNEL_TEST_INIT          the machine's side
//	KERNEL_TEST_PROGRAM       the test
//	KERNEL_TEST_FILES         a file that lists the test's runfiles, one a line
//	KERNEL_TEST_FOLDER        where the test starts, below the runfiles
//	KERNEL_TEST_MEMORY        the machine's memory in MiB
//	KERNEL_TEST_DISKS         blank disks, with commas: a size in MiB, and after a
//	                          slash, where it isn't 512, the size of sectors
//	KERNEL_TEST_FORWARD       names of variables that the test gets, with commas
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/kernel/host"
	"powercloud.unidatum.com/tools/lint"
)

// failed is the exit status where the test itself has none.
const failed = 1

// spare is how long before Bazel's timeout the machine is given up, so that
// there is time to say how far it came.
const spare = 5 * time.Second

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if seconds, err := strconv.Atoi(os.Getenv("TEST_TIMEOUT")); err == nil {
		limit := time.Duration(seconds)*time.Second - spare
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("the test did not end within %v", limit))
		defer cancel()
	}
	status, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "kernel test: %v\n", err)
		status = max(status, failed)
	}
	os.Exit(status)
}

// run runs the test and returns its status.
func run(ctx context.Context, arguments []string) (int, error) {
	job := host.Job{Task: newTask(arguments), Files: addFiles, Output: os.Stdout, Report: writeReport}
	var err error
	if job.Init, err = runfile("KERNEL_TEST_INIT"); err != nil {
		return failed, err
	}
	if job.Kernel, err = runfile("KERNEL_TEST_KERNEL"); err != nil {
		return failed, err
	}
	if job.Machine, err = configuration(); err != nil {
		return failed, err
	}
	return host.Run(ctx, job)
}

// writeReport writes the test's report where Bazel wants it.
func writeReport(content []byte) error {
	if file := os.Getenv("XML_OUTPUT_FILE"); file != "" {
		return os.WriteFile(file, content, 0o644)
	}
	return nil
}

// configuration is what the machine is made of.
func configuration() (machine.Config, error) {
	memory, err := strconv.Atoi(os.Getenv("KERNEL_TEST_MEMORY"))
	if err != nil {
		return machine.Config{}, fmt.Errorf("read KERNEL_TEST_MEMORY: %w", err)
	}
	disks, err := parseDisks(os.Getenv("KERNEL_TEST_DISKS"))
	if err != nil {
		return machine.Config{}, fmt.Errorf("read KERNEL_TEST_DISKS: %w", err)
	}
	return machine.Config{
		Name:         "kernel",
		Architecture: machine.Architecture(os.Getenv("KERNEL_TEST_ARCHITECTURE")),
		MemoryMiB:    memory,
		Disks:        disks,
	}, nil
}

// parseDisks reads what the rule says of blank disks.
func parseDisks(list string) ([]machine.Disk, error) {
	var disks []machine.Disk
	for _, item := range strings.Split(list, ",") {
		if item == "" {
			continue
		}
		size, sector, found := strings.Cut(item, "/")
		if !found {
			sector = "512"
		}
		mebibytes, err := strconv.ParseInt(size, 10, 32)
		if err != nil {
			return nil, err
		}
		bytes, err := strconv.Atoi(sector)
		if err != nil {
			return nil, err
		}
		disks = append(disks, machine.Disk{Size: mebibytes << 20, SectorSize: bytes})
	}
	return disks, nil
}

// runfile returns the path of the file that a variable names.
func runfile(variable string) (string, error) {
	name := os.Getenv(variable)
	if name == "" {
		return "", fmt.Errorf("%s is not set: this program runs as a test of the rule kernel_test", variable)
	}
	path, err := lint.Runfile(name)
	if err != nil {
		return "", fmt.Errorf("find the file that %s names: %w", variable, err)
	}
	return path, nil
}
