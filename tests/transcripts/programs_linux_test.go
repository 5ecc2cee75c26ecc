package transcripts

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/daemon"
)

// systemPrograms are the commands that only Linux has.
var systemPrograms = map[string]func(){
	"pcd":          func() { os.Exit(daemon.Main("dev", "")) },
	"alone":        func() { os.Exit(alone()) },
	"alone-inside": func() { os.Exit(aloneInside()) },
}

// alone runs a program in a network and with processes of its own: no other program has
// its ports, and nothing that it has started is left when it has ended.
//
//	alone PROGRAM [ARGUMENT...]
//
// As another user than root, and in a sandbox, that takes a user namespace as well.
func alone() int {
	command := exec.Command("/proc/self/exe", os.Args[1:]...)
	command.Args[0] = "alone-inside"
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNET | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		// It belongs to the thread that has started it.
		Pdeathsig: unix.SIGKILL,
	}
	runtime.LockOSThread()
	err := command.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1)
	}
	fmt.Fprintln(os.Stderr, "alone:", err)
	return 1
}

// aloneInside becomes the program, once there is an address 127.0.0.1.
func aloneInside() int {
	if err := enter(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "alone:", err)
	}
	return 1
}

func enter(program []string) error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return err
	}
	if len(program) == 0 {
		return errors.New("there is nothing to run")
	}
	path, err := exec.LookPath(program[0])
	if err != nil {
		return err
	}
	return unix.Exec(path, program, os.Environ())
}
