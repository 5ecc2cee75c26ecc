// Init is the first program of a kernel that a test runs on: it mounts what
// Linux programs expect, runs the test, tells the host what came of it, and
// switches the machine off. See package kernel.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/machine/kernel"
	"powercloud.unidatum.com/tests/machine/kernel/frame"
)

func main() {
	if err := run(); err != nil {
		// There is no port: the console has to do, and the host sees that
		// no status came.
		fmt.Fprintf(os.Stderr, "init: %v\n", err)
	}
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		fmt.Fprintf(os.Stderr, "init: switch the machine off: %v\n", err)
	}
}

// run runs the test and tells the host all that there is to tell.
func run() error {
	problems := prepare()
	content, err := os.ReadFile(kernel.TaskFile)
	if err != nil {
		return errors.Join(problems, err)
	}
	var task kernel.Task
	if err := json.Unmarshal(content, &task); err != nil {
		return errors.Join(problems, err)
	}
	port, err := openPort(task.Port)
	if err != nil {
		return errors.Join(problems, err)
	}
	status, err := test(task, port)
	if problems = errors.Join(problems, err); problems != nil {
		if err := frame.Write(port, frame.Problem, []byte(problems.Error())); err != nil {
			return err
		}
	}
	if err := frame.Write(port, frame.Status, []byte{status}); err != nil {
		return err
	}
	// What the port's driver still holds would be lost with the power.
	return unix.IoctlSetInt(int(port.Fd()), unix.TCSBRK, 1)
}

// prepare makes the machine one that Linux programs can run on. What can't be
// done is not there in this kernel; the test may not need it.
func prepare() error {
	var problems []error
	for _, m := range []struct{ source, target, kind string }{
		{"proc", "/proc", "proc"},
		{"sysfs", "/sys", "sysfs"},
		{"devtmpfs", "/dev", "devtmpfs"},
		{"tmpfs", "/run", "tmpfs"},
		{"tmpfs", "/tmp", "tmpfs"},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2"},
	} {
		err := os.MkdirAll(m.target, 0o755)
		if err == nil || errors.Is(err, fs.ErrExist) {
			err = unix.Mount(m.source, m.target, m.kind, 0, "")
		}
		if err != nil && !errors.Is(err, unix.EBUSY) {
			problems = append(problems, fmt.Errorf("mount %s: %w", m.target, err))
		}
	}
	if err := os.Chmod("/tmp", 0o1777); err != nil {
		problems = append(problems, err)
	}
	if err := loopbackUp(); err != nil {
		problems = append(problems, fmt.Errorf("switch the loopback network on: %w", err))
	}
	return errors.Join(problems...)
}

// loopbackUp switches the loopback network on.
func loopbackUp() error {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request)
}

// openPort opens a serial port, which then changes no byte.
func openPort(path string) (*os.File, error) {
	port, err := os.OpenFile(path, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("open the serial port for the host: %w", err)
	}
	settings, err := unix.IoctlGetTermios(int(port.Fd()), unix.TCGETS)
	if err != nil {
		return nil, fmt.Errorf("set up the serial port %s: %w", path, err)
	}
	settings.Iflag, settings.Oflag, settings.Lflag = 0, 0, 0
	settings.Cflag = unix.B115200 | unix.CS8 | unix.CREAD | unix.CLOCAL
	settings.Ispeed, settings.Ospeed = unix.B115200, unix.B115200
	if err := unix.IoctlSetTermios(int(port.Fd()), unix.TCSETS, settings); err != nil {
		return nil, fmt.Errorf("set up the serial port %s: %w", path, err)
	}
	return port, nil
}

// test runs the test and returns its exit status.
func test(task kernel.Task, port io.Writer) (status byte, err error) {
	command := exec.Command(task.Program, task.Arguments...)
	command.Dir, command.Env = task.Folder, task.Environment
	output := frame.Writer{To: port, Kind: frame.Output}
	// One and the same writer, so that there is one goroutine that writes.
	command.Stdout, command.Stderr = output, output
	err = command.Run()
	report, reportErr := os.ReadFile(kernel.ReportFile)
	if reportErr == nil {
		reportErr = frame.Write(port, frame.Report, report)
	}
	if errors.Is(reportErr, fs.ErrNotExist) {
		reportErr = nil // It died before it wrote one; its status says so.
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		status = byte(exit.ExitCode())
		if !exit.Exited() {
			return 1, errors.Join(fmt.Errorf("the test ended by %w", err), reportErr)
		}
		return status, reportErr
	}
	if err != nil {
		return 1, errors.Join(fmt.Errorf("start the test: %w", err), reportErr)
	}
	return 0, reportErr
}
