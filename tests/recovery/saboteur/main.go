// Saboteur is started in pcd's place in the machines of the tests of package
// recovery. It leaves another copy of itself behind, which nobody ends before the
// machine does, and then becomes the real pcd.
//
// The copy does what it is told on the second serial port, a line each, and answers
// each line with one that begins with "saboteur: ", the line and ": done" or ": error". The
// firmware writes to that port as well, before, and an answer to what ended the machine
// may come or not.
//
//	read PATH       tells a file's content, quoted
//	time            tells the machine's time, in seconds since 1970
//	find pcd        tells pcd's process
//	signal 1 N      sends the signal of number N to PID 1
//	signal pcd N    sends it to pcd
//	starve          leaves no other program any of the processors' time, and never answers
//	count           adds one to a number that is kept in the state partition, and tells it
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// daemon is where the real pcd is.
	daemon = "/sbin/pcd-itself"
	// stay is the argument of the copy that stays.
	stay = "stay"
	// port is the second serial port.
	port = "/dev/ttyS1"
	// groups is the control group of those that no group holds: pcinit ends all
	// that is in pcd's.
	groups = "/sys/fs/cgroup"
)

func main() {
	if len(os.Args) == 2 && os.Args[1] == stay {
		fail(serve())
	}
	if err := leaveCopy(); err != nil {
		fmt.Fprintln(os.Stderr, "saboteur:", err)
	}
	fail(syscall.Exec(daemon, os.Args, os.Environ()))
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "saboteur:", err)
	os.Exit(1)
}

// leaveCopy starts the copy, unless there is one from an earlier start of pcd.
func leaveCopy() error {
	taken, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(taken)
	// A name that only one process can have, and that goes with it.
	switch err := unix.Bind(taken, &unix.SockaddrUnix{Name: "@saboteur"}); {
	case errors.Is(err, unix.EADDRINUSE):
		return nil
	case err != nil:
		return err
	}
	nothing, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer nothing.Close()
	group, err := os.Open(groups)
	if err != nil {
		return err
	}
	defer group.Close()
	// In the place of descriptor 3, which leads to pcinit, the copy gets the name.
	_, err = syscall.ForkExec("/proc/self/exe", []string{"saboteur", stay}, &syscall.ProcAttr{
		Dir:   "/",
		Files: []uintptr{nothing.Fd(), nothing.Fd(), nothing.Fd(), uintptr(taken)},
		Sys:   &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(group.Fd())},
	})
	return err
}

// serve obeys until the machine ends.
func serve() error {
	file, err := os.OpenFile(port, os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	if err := raw(int(file.Fd())); err != nil {
		return fmt.Errorf("set up %s: %w", port, err)
	}
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		answer, err := obey(strings.Fields(lines.Text()))
		if err != nil {
			answer = "error " + err.Error()
		} else {
			answer = "done " + answer
		}
		if _, err := fmt.Fprintf(file, "\nsaboteur: %s: %s\n", lines.Text(), answer); err != nil {
			return err
		}
	}
	return errors.Join(lines.Err(), io.EOF)
}

// raw has a terminal pass on bytes as they are.
func raw(fd int) error {
	settings, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	settings.Iflag, settings.Oflag, settings.Lflag = 0, 0, 0
	settings.Cflag = settings.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8 | unix.CLOCAL | unix.CREAD
	settings.Cc[unix.VMIN], settings.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, unix.TCSETS, settings)
}
