// Package host is the host's side of a program that runs as the first program of a
// kernel: it packs it into an initramfs, boots the kernel in a virtual machine, and
// takes what comes of it. See package kernel.
package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/machine/initramfs"
	"powercloud.unidatum.com/tests/machine/kernel"
	"powercloud.unidatum.com/tests/machine/kernel/frame"
)

// failed is the status where the program itself has none.
const failed = 1

// port is the path that the second serial port has in the machine.
const port = "/dev/ttyS1"

// A Job is a program, and the machine that it runs on.
type Job struct {
	// Machine is what the machine is made of. What it starts from is set by Run.
	Machine machine.Config
	// Kernel is the path of the kernel: for amd64 a bzImage, for arm64 an EFI file. Init is
	// that of the machine's side.
	Kernel, Init string
	// Task is what the machine is to do. Its port is set by Run.
	Task kernel.Task
	// Files adds the program, and what it needs, to the machine's files.
	Files func(*initramfs.Archive) error
	// Output gets what the program prints.
	Output io.Writer
	// Report, unless nil, gets what it leaves in [kernel.ReportFile].
	Report func([]byte) error
}

// Run runs a job and returns the program's status. Where the program could not be run to
// its end there is an error, with the last lines of the machine's console, and the
// status isn't 0.
func Run(ctx context.Context, job Job) (status int, err error) {
	folder, err := os.MkdirTemp("", "kernel-test-")
	if err != nil {
		return failed, fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	archive := filepath.Join(folder, "initramfs")
	if err := job.pack(archive); err != nil {
		return failed, fmt.Errorf("pack the program: %w", err)
	}
	received := &receiver{job: job, status: -1, done: make(chan struct{})}
	reader, writer := io.Pipe()
	go received.follow(reader)
	console, err := machine.RunOnce(ctx, job.configuration(archive), writer)
	_ = writer.Close() // It always works.
	<-received.done
	err = errors.Join(received.err, err)
	if received.status < 0 {
		err = errors.Join(errors.New("the machine went off before the program ended"), err)
	}
	if err != nil && console != nil {
		return failed, fmt.Errorf("%w; the last lines of the machine's console:\n%s", err, console.Last(80))
	}
	if err != nil {
		return failed, err
	}
	return received.status, nil
}

// pack writes the initramfs.
func (j Job) pack(file string) error {
	j.Task.Port = port
	task, err := json.Marshal(j.Task)
	if err != nil {
		return err
	}
	archive, err := initramfs.Create(file)
	if err != nil {
		return err
	}
	archive.Content(kernel.TaskFile, 0o600, task)
	return errors.Join(archive.File("init", j.Init), j.Files(archive), archive.Close())
}

// configuration is the machine, with what it starts from.
func (j Job) configuration(archive string) machine.Config {
	config := j.Machine
	// A kernel that panics starts the machine again at once, which ends it here.
	config.StopAtReset = true
	config.Kernel = &machine.Kernel{Path: j.Kernel, Initramfs: archive, CommandLine: "panic=-1"}
	config.Port, config.Random = true, true
	if config.Architecture == machine.AMD64 {
		// An EFI file for arm64 starts by UEFI only; a bzImage also without, and faster.
		config.Firmware = machine.Direct
		config.Kernel.CommandLine += " console=ttyS0"
	}
	return config
}

// receiver takes what the machine sends.
type receiver struct {
	job  Job
	done chan struct{}
	// status is the program's, or -1 where none came.
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
		_, err := r.job.Output.Write(content)
		return err
	case frame.Report:
		if r.job.Report != nil {
			return r.job.Report(content)
		}
	case frame.Problem:
		return fmt.Errorf("in the machine: %s", bytes.ReplaceAll(content, []byte("\n"), []byte("; ")))
	case frame.Status:
		r.status = int(content[0])
	}
	return nil
}
