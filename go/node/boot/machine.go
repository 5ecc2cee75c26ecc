// Package boot is what PID 1 of a node does: it brings up what the kernel leaves
// to programs, runs pcd and starts it again when it ends, and ends the machine's
// run in good order.
//
// # What may go wrong, and what then happens
//
//   - pcd ends, or says nothing for 30 s: it is killed with everything in its
//     control group and started again, after 1 s at first and 1 min at most.
//     Its last words go to the kernel's log and to every console, and once a boot
//     to the firmware's variables, where the next boot finds them.
//   - PID 1 panics: its last words go to the kernel's log and thereby to every
//     console; the kernel then panics, saves the end of its log in pstore, and
//     reboots after 10 s.
//   - PID 1 freezes: nobody feeds the watchdogs. The kernel's own resets the
//     machine; that of the hardware does, a little later, if the kernel can't.
//   - The kernel freezes: the hardware's watchdog resets the machine, where there
//     is one that works.
//   - The machine panics at every boot: see crashes.go.
//
// Nothing but a missing /proc or /dev keeps a boot from going on: a node that
// runs with less can still be reached and mended.
package boot

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/backoff"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/cgroup"
	"powercloud.unidatum.com/go/sys/kernellog"
	"powercloud.unidatum.com/go/sys/mounts"
	"powercloud.unidatum.com/go/sys/power"
	"powercloud.unidatum.com/go/sys/powerbutton"
	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/go/sys/random"
	"powercloud.unidatum.com/go/sys/sysctl"
	"powercloud.unidatum.com/go/sys/watchdog"
)

// Machine says where everything of a machine is. Tests give another one than
// Node's.
type Machine struct {
	// Program is pcd's path, and Arguments what it gets, its name first.
	Program   string
	Arguments []string
	// Environment is what pcd finds in its environment beside what PID 1 adds.
	Environment []string
	// HostName is the kernel's name for the machine until pcd knows better; ""
	// leaves it as it is.
	HostName string

	Mounts     []mounts.Mount
	SysctlRoot string
	Settings   []sysctl.Setting
	// Memory is how much of it there is, in bytes; 0 if that isn't known.
	Memory     uint64
	CgroupRoot string

	// ConsoleTable lists the kernel's consoles, which are below Devices.
	ConsoleTable, Devices string
	KernelLog             string
	// CrashOutput are devices for PID 1's own last words, the first that can be
	// opened is used.
	CrashOutput []string

	WatchdogClass string
	Pstore        string
	// Variables is where the firmware's variables are shown.
	Variables     string
	RandomDevice  string
	RandomSources []string
	PowerButtons  string
	// RunDir is a folder in memory for what is worth keeping until the next
	// boot.
	RunDir string
	Proc   string

	Timing Timing
	// Unmount writes everything to the disks and unmounts them.
	Unmount func() error
	// End is called last, to reboot or to switch off.
	End func(power.Action) error
}

// Timing is how long things may take.
type Timing struct {
	// Watchdog is the timeout of hardware's watchdogs, and of the kernel's own where
	// it is alone; beside hardware it has less.
	Watchdog time.Duration
	// Frozen is after how long without a word pcd is taken for frozen.
	Frozen time.Duration
	// Stop is how long pcd may take to end when asked to.
	Stop time.Duration
	// Dump is how long pcd may take to write its stacks before it is killed.
	Dump time.Duration
	// Processes is how long the other processes may take to end.
	Processes time.Duration
	// Entropy is how long pcd's start waits for random numbers at most.
	Entropy time.Duration
	// Good is for how long pcd must have been ready for the boot to count as a
	// good one.
	Good time.Duration
	// Restart is how long pcd's next start waits.
	Restart backoff.Policy
	// Crashes is how long pcd's first start waits after a number of boots that
	// ended in a panic.
	Crashes func(panics int) time.Duration
}

// Node is the machine that PID 1 of a node runs on.
func Node() Machine {
	return Machine{
		Program:     "/sbin/pcd",
		Arguments:   []string{"pcd"},
		Environment: []string{"PATH=/sbin", "HOME=/", "TMPDIR=/tmp", "GOTRACEBACK=all"},
		HostName:    "powercloud",

		Mounts:     fileSystems(),
		SysctlRoot: sysctl.Root,
		Settings:   Settings(runtime.GOARCH),
		Memory:     totalMemory(),
		CgroupRoot: cgroup.Root,

		ConsoleTable: "/proc/consoles",
		Devices:      "/dev",
		KernelLog:    kernellog.Path,
		// ttyprintk puts what a crash writes piece by piece together into lines
		// of the kernel's log; without it each piece is a record.
		CrashOutput: []string{"/dev/ttyprintk", kernellog.Path},

		WatchdogClass: watchdog.Class,
		Pstore:        pstore.Path,
		Variables:     pstore.Variables,
		RandomDevice:  random.Device,
		// What tells machines, copies of one and boots apart.
		RandomSources: []string{
			"/dev/hwrng",
			"/sys/class/dmi/id/product_uuid",
			"/sys/class/dmi/id/product_serial",
			"/sys/class/dmi/id/board_serial",
			"/proc/interrupts",
			"/proc/timer_list",
			"/proc/net/dev",
		},
		PowerButtons: powerbutton.Devices,
		RunDir:       "/run/powercloud",
		Proc:         "/proc",

		Timing: Timing{
			Watchdog:  time.Minute,
			Frozen:    notify.FrozenAfter,
			Stop:      30 * time.Second,
			Dump:      5 * time.Second,
			Processes: 10 * time.Second,
			Entropy:   time.Minute,
			Good:      10 * time.Minute,
			Crashes:   crashWait,
		},
		Unmount: func() error {
			targets, err := mounts.Targets()
			if err != nil {
				return err
			}
			return power.Unmount(targets)
		},
		End: power.Do,
	}
}

// fileSystems are what a node mounts. Programs lie on the root file system
// alone: nothing else may be executed, and no device lies outside of /dev.
func fileSystems() []mounts.Mount {
	const data = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	return []mounts.Mount{
		{Target: "/proc", Type: "proc", Flags: data, Mode: 0o555},
		{Target: "/sys", Type: "sysfs", Flags: data, Mode: 0o555},
		{Target: "/dev", Type: "devtmpfs", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Options: "mode=0755", Mode: 0o755},
		{Target: "/dev/pts", Type: "devpts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC, Options: "mode=0620,ptmxmode=0666", Mode: 0o755, Optional: true},
		{Target: "/dev/shm", Type: "tmpfs", Flags: data, Options: "mode=1777,size=10%", Mode: 0o755},
		{Target: "/run", Type: "tmpfs", Flags: data, Options: "mode=0755,size=10%", Mode: 0o755},
		{Target: "/tmp", Type: "tmpfs", Flags: data, Options: "mode=1777,size=25%", Mode: 0o755},
		{Target: cgroup.Root, Type: "cgroup2", Flags: data, Options: "nsdelegate", Mode: 0o755},
		{Target: pstore.Path, Type: "pstore", Flags: data, Mode: 0o755, Optional: true},
		{Target: "/sys/kernel/security", Type: "securityfs", Flags: data, Mode: 0o755, Optional: true},
		{Target: pstore.Variables, Type: "efivarfs", Flags: data, Mode: 0o755, Optional: true},
	}
}
