package root

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isolated is set in the environment of a program that runs in namespaces of its
// own.
const isolated = "POWERCLOUD_ROOT_ISOLATED"

// Isolate runs the calling program once more, with the same arguments, in
// namespaces of its own: there it is root, sees no other process and no network,
// and may mount. It returns true and that run's exit status when it ended. In that
// run itself, Isolate returns false: the work goes on from there. It needs no
// root, but a kernel that lets users create namespaces.
func Isolate() (bool, int, error) {
	if os.Getenv(isolated) != "" {
		return false, 0, prepare()
	}
	program, err := os.Executable()
	if err != nil {
		return true, 1, fmt.Errorf("isolate a program: %w", err)
	}
	// The other run is killed with the thread that started it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command := exec.Command(program, os.Args[1:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = append(os.Environ(), isolated+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
			unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	err = command.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return true, max(exit.ExitCode(), 1), nil
	}
	if err != nil {
		return true, 1, fmt.Errorf("isolate a program, which needs user namespaces: %w", err)
	}
	return true, 0, nil
}

// prepare gives the namespaces what can't come from outside.
func prepare() error {
	if err := unix.Sethostname([]byte("powercloud")); err != nil {
		return fmt.Errorf("name the machine: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts apart: %w", err)
	}
	return nil
}

// devices are the device nodes that programs in a root have.
var devices = [...]string{"full", "null", "random", "urandom", "zero"}

// A Root is a root that was unpacked and in which programs can run.
type Root struct{ directory string }

// Open mounts what programs need into the root in the folder, which [Unpack]
// made. Only an isolated program can.
func Open(directory string) (*Root, error) {
	directory, err := filepath.Abs(directory)
	if err != nil {
		return nil, fmt.Errorf("open a root: %w", err)
	}
	r := &Root{directory: directory}
	for _, name := range devices {
		node := r.Path("dev/" + name)
		if err := os.WriteFile(node, nil, 0o600); err != nil {
			return nil, fmt.Errorf("open the root %s: %w", directory, err)
		}
		if err := unix.Mount("/dev/"+name, node, "", unix.MS_BIND, ""); err != nil {
			return nil, fmt.Errorf("open the root %s: mount /dev/%s: %w", directory, name, err)
		}
	}
	if err := os.Symlink("/proc/self/fd", r.Path("dev/fd")); err != nil {
		return nil, fmt.Errorf("open the root %s: %w", directory, err)
	}
	if err := unix.Mount("proc", r.Path("proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return nil, fmt.Errorf("open the root %s: mount /proc: %w", directory, err)
	}
	return r, nil
}

// Path returns where a file of the root lies for programs outside it.
func (r *Root) Path(name string) string { return filepath.Join(r.directory, name) }

// Command returns the command that runs a program, named by its absolute path in
// the root, with the root as all that it sees. Its environment holds nothing of
// the caller's.
func (r *Root) Command(ctx context.Context, program string, arguments ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Dir = "/"
	command.Env = []string{"HOME=/root", "LC_ALL=C", "PATH=/usr/bin:/usr/sbin", "TZ=UTC"}
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: r.directory}
	return command
}
