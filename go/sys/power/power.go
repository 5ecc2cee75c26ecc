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

// kernelThread marks the kernel's own among a process's flags: PF_KTHREAD in its
// include/linux/sched.h.
const kernelThread = 0x0020_0000

// killedTime is how long processes that were killed may take to be gone. One that waits
// for a disk may never be.
const killedTime = 5 * time.Second

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
		// Not its command line: a process can make that empty, as the kernel's are.
		if stat, err := os.ReadFile(filepath.Join(proc, entry.Name(), "stat")); err == nil && !ofKernel(string(stat)) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// ofKernel tells whether /proc/PID/stat is that of a thread of the kernel's. The
// flags are the seventh word after the program's name, which may hold anything.
func ofKernel(stat string) bool {
	words := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(words) < 7 {
		return false
	}
	flags, err := strconv.ParseUint(words[6], 10, 32)
	return err == nil && flags&kernelThread != 0
}

// EndProcesses asks every process to end, waits at most a time, and kills the
// rest. Only PID 1 may call it. It returns how many had to be killed. When it
// returns, what was killed is gone and holds no file system any more, unless it
// waits for a disk.
func EndProcesses(proc string, grace time.Duration) (killed int, err error) {
	if os.Getpid() != 1 {
		return 0, errors.New("end all processes: only PID 1 may do that")
	}
	if err := unix.Kill(-1, unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return 0, fmt.Errorf("ask all processes to end: %w", err)
	}
	left, err := wait(proc, grace)
	if err != nil || left == 0 {
		return 0, err
	}
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return left, fmt.Errorf("kill the processes that are left: %w", err)
	}
	switch still, err := wait(proc, killedTime); {
	case err != nil:
		return left, err
	case still > 0:
		return left, fmt.Errorf("%d processes that were killed don't end", still)
	}
	return left, nil
}

// wait waits at most a time until there is no process, and returns how many are
// left.
func wait(proc string, atMost time.Duration) (left int, err error) {
	deadline := time.Now().Add(atMost)
	for {
		pids, err := Processes(proc)
		if err != nil || len(pids) == 0 || time.Now().After(deadline) {
			return len(pids), err
		}
		time.Sleep(10 * time.Millisecond)
	}
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
