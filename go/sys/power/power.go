// Package power ends the machine's run in good order: processes, file systems,
// and then the machine itself.
package power

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Action is what becomes of the machine.
type Action int

// The actions.
const (
	Reboot Action = iota
	Off
)

// String returns the action's name.
func (a Action) String() string {
	if a == Off {
		return "power-off"
	}
	return "reboot"
}

// Do reboots the machine or switches it off, at once. It returns only when the
// kernel refuses, which it does not for PID 1.
func Do(a Action) error {
	command := unix.LINUX_REBOOT_CMD_RESTART
	if a == Off {
		command = unix.LINUX_REBOOT_CMD_POWER_OFF
	}
	if err := unix.Reboot(command); err != nil {
		return fmt.Errorf("%v: %w", a, err)
	}
	return nil
}

// CatchCtrlAltDel has the kernel send SIGINT to PID 1 when somebody presses
// these keys, instead of rebooting at once.
func CatchCtrlAltDel() error {
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_CAD_OFF); err != nil {
		return fmt.Errorf("catch Ctrl-Alt-Del: %w", err)
	}
	return nil
}

// Processes returns the numbers of the processes that run, without the kernel's
// own, this one, and PID 1, given where /proc is.
func Processes(proc string) ([]int, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, fmt.Errorf("list the processes: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid <= 1 || pid == os.Getpid() {
			continue
		}
		// The kernel's threads have no memory of their own, and neither has a
		// zombie: both show an empty list.
		if maps, err := os.ReadFile(filepath.Join(proc, entry.Name(), "cmdline")); err == nil && len(maps) > 0 {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// EndProcesses asks every process to end, waits at most a time, and kills the
// rest. Only PID 1 may call it. It returns how many had to be killed.
func EndProcesses(proc string, grace time.Duration) (killed int, err error) {
	if os.Getpid() != 1 {
		return 0, errors.New("end all processes: only PID 1 may do that")
	}
	if err := unix.Kill(-1, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("ask all processes to end: %w", err)
	}
	deadline := time.Now().Add(grace)
	for {
		left, err := Processes(proc)
		if err != nil {
			return 0, err
		}
		if len(left) == 0 {
			return 0, nil
		}
		if time.Now().After(deadline) {
			killed = len(left)
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return killed, fmt.Errorf("kill the processes that are left: %w", err)
	}
	return killed, nil
}

// kept are file systems of the kernel's own: nothing of them is on a disk, and
// the last steps need them.
var kept = []string{"/", "/dev", "/proc", "/sys", "/run"}

// Unmount writes everything to the disks and unmounts what is mounted, given in
// the order in which it was mounted. What is still in use is made read-only
// instead. It goes on after a failure.
func Unmount(targets []string) error {
	unix.Sync()
	var failures []error
	for i := len(targets) - 1; i >= 0; i-- {
		if target := targets[i]; !keep(target) {
			failures = append(failures, unmount(target))
		}
	}
	unix.Sync()
	return errors.Join(failures...)
}

func keep(target string) bool {
	for _, k := range kept {
		if target == k || k != "/" && strings.HasPrefix(target, k+"/") {
			return true
		}
	}
	return false
}

func unmount(target string) error {
	err := unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
	if err == nil || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if readOnly := unix.Mount("", target, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); readOnly == nil {
		return nil
	}
	return fmt.Errorf("unmount %s: %w", target, err)
}
