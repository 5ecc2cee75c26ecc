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
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/kernel/frame"
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
func run(ctx context.Context, arguments []string) (status int, err error) {
	folder, err := os.MkdirTemp("", "kernel-test-")
	if err != nil {
		return failed, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	initramfs := filepath.Join(folder, "initramfs")
	if err := writeInitramfs(initramfs, arguments); err != nil {
		return failed, fmt.Errorf("pack the test: %w", err)
	}
	config, err := configuration(initramfs)
	if err != nil {
		return failed, err
	}
	received := &receiver{output: os.Stdout, status: -1, done: make(chan struct{})}
	reader, writer := io.Pipe()
	go received.follow(reader)
	console, err := machine.RunOnce(ctx, config, writer)
	_ = writer.Close() // It always works.
	<-received.done
	err = errors.Join(received.err, err)
	if received.status < 0 {
		err = errors.Join(errors.New("the machine went off before the test ended"), err)
	}
	if err != nil && console != nil {
		return failed, fmt.Errorf("%w; the last lines of the machine's console:\n%s", err, console.Last(80))
	}
	return received.status, err
}

// configuration is what the machine is made of.
func configuration(initramfs string) (machine.Config, error) {
	kernel, err := runfile("KERNEL_TEST_KERNEL")
	if err != nil {
		return machine.Config{}, err
	}
	memory, err := strconv.Atoi(os.Getenv("KERNEL_TEST_MEMORY"))
	if err != nil {
		return machine.Config{}, fmt.Errorf("read KERNEL_TEST_MEMORY: %w", err)
	}
	disks, err := parseDisks(os.Getenv("KERNEL_TEST_DISKS"))
	if err != nil {
		return machine.Config{}, fmt.Errorf("read KERNEL_TEST_DISKS: %w", err)
	}
	config := machine.Config{
		Name:         "kernel",
		Architecture: machine.Architecture(os.Getenv("KERNEL_TEST_ARCHITECTURE")),
		MemoryMiB:    memory,
		Disks:        disks,
		// A kernel that panics starts the machine again at once, which ends
		// it here.
		StopAtReset: true,
		Kernel:      &machine.Kernel{Path: kernel, Initramfs: initramfs, CommandLine: "panic=-1"},
		Port:        true,
		Random:      true,
	}
	if config.Architecture == machine.AMD64 {
		// An EFI file for arm64 starts by UEFI only; a bzImage also without,
		// and faster.
		config.Firmware = machine.Direct
		config.Kernel.CommandLine += " console=ttyS0"
	}
	return config, nil
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

// port is the path that the second serial port has in the machine.
const port = "/dev/ttyS1"

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

// receiver takes what the machine sends.
type receiver struct {
	output io.Writer
	done   chan struct{}
	// status is the test's, or -1 where none came.
	status int
	err    error
}

// follow reads frames until the machine is off.
func (r *receiver) follow(port io.Reader) {
	defer close(r.done)
	for r.err == nil {
		kind, content, err := frame.Read(port)
		if errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return
		}
		if err == nil {
			err = r.take(kind, content)
		}
		r.err = err
	}
	_, _ = io.Copy(io.Discard, port) // So that the machine isn't held up.
}

// take takes one frame.
func (r *receiver) take(kind frame.Kind, content []byte) error {
	switch kind {
	case frame.Output:
		_, err := r.output.Write(content)
		return err
	case frame.Report:
		if file := os.Getenv("XML_OUTPUT_FILE"); file != "" {
			return os.WriteFile(file, content, 0o644)
		}
	case frame.Problem:
		return fmt.Errorf("in the machine: %s", bytes.ReplaceAll(content, []byte("\n"), []byte("; ")))
	case frame.Status:
		r.status = int(content[0])
	}
	return nil
}
