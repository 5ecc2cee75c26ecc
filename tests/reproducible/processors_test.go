package reproducible_test

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOnFewer starts a command on one processor less than there are, if there are
// several. What counts processors to know how much to do at a time, as the kernels'
// build does, then does less.
func startOnFewer(command *exec.Cmd) error {
	// A program begins on the processors of the thread that starts it. No other
	// thread's are changed.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("ask for the processors: %w", err)
	}
	if err := setProcessors(withoutOne(all)); err != nil {
		return err
	}
	err := command.Start()
	if restored := setProcessors(all); restored != nil {
		return restored
	}
	return err
}

func setProcessors(set unix.CPUSet) error {
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("choose the processors: %w", err)
	}
	return nil
}

// withoutOne returns the processors without the first of them, unless it is the only
// one.
func withoutOne(set unix.CPUSet) unix.CPUSet {
	if set.Count() < 2 {
		return set
	}
	first := 0
	for !set.IsSet(first) {
		first++
	}
	set.Clear(first)
	return set
}
