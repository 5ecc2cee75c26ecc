package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// throttle is the kernel's parameter for how much of a second programs of real-time
// priority may run; -1 is all of it.
const throttle = "/proc/sys/kernel/sched_rt_runtime_us"

// starve takes every processor for itself, at a priority that nobody else has: from then
// on no other program runs, PID 1 included. It returns if it can't.
func starve() error {
	if err := os.WriteFile(throttle, []byte("-1"), 0); err != nil {
		return err
	}
	var processors unix.CPUSet
	if err := unix.SchedGetaffinity(0, &processors); err != nil {
		return fmt.Errorf("list the processors: %w", err)
	}
	count := processors.Count()
	runtime.GOMAXPROCS(count + 1)
	var ready sync.WaitGroup
	failures := make(chan error, count)
	begin := make(chan struct{})
	for range count {
		ready.Add(1)
		go func() {
			runtime.LockOSThread()
			// Each of them finds the processor that the others leave.
			err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 99}, 0)
			if err != nil {
				failures <- fmt.Errorf("get real-time priority: %w", err)
				ready.Done()
				return
			}
			ready.Done()
			<-begin
			for begun := time.Now(); time.Since(begun) >= 0; {
				// The kernel isn't asked for the time, so that nothing lets another run.
			}
		}()
	}
	ready.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	close(begin)
	select {}
}
