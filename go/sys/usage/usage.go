// Package usage says how much of a machine's processors and memory is in use, by what
// the kernel has in /proc/stat and /proc/meminfo: see proc_stat(5) and
// proc_meminfo(5).
package usage

import (
	"errors"
	"fmt"

	"github.com/prometheus/procfs"
)

// CPU is how long the processors have worked since the machine was started. Two
// readings tell how busy they were in between.
type CPU struct {
	// Count is the number of processors that are switched on.
	Count int
	// Busy and Total are in seconds, summed over the processors. Waiting for a disk
	// isn't being busy; time that a host gave to others is.
	Busy, Total float64
}

// ReadCPU reads it; proc is where the file system of that name is mounted, as a rule
// /proc.
func ReadCPU(proc string) (CPU, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return CPU{}, fmt.Errorf("read how busy the processors are: %w", err)
	}
	stat, err := fs.Stat()
	if err != nil {
		return CPU{}, fmt.Errorf("read how busy the processors are: %w", err)
	}
	if len(stat.CPU) == 0 {
		return CPU{}, errors.New("read how busy the processors are: the kernel lists none")
	}
	// The time of guests is in User and Nice already.
	t := stat.CPUTotal
	busy := t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ + t.Steal
	return CPU{Count: len(stat.CPU), Busy: busy, Total: busy + t.Idle + t.Iowait}, nil
}

// Percent returns how busy the processors were since an earlier reading, from 0 to
// 100. The zero value is a reading from the machine's start.
func (c CPU) Percent(earlier CPU) float64 {
	total := c.Total - earlier.Total
	// Not every counter of the kernel's only grows: Iowait may shrink. A NaN fails
	// each comparison and is none of the results.
	if total > 0 {
		if share := (c.Busy - earlier.Busy) / total * 100; share > 0 {
			return min(share, 100)
		}
	}
	return 0
}

// Memory is how much memory a machine has, in bytes.
type Memory struct {
	// Used is what programs and the kernel couldn't get without taking it from
	// others: Total less what the kernel takes for available.
	Used, Total uint64
}

// ReadMemory reads it; proc is where the file system of that name is mounted, as a
// rule /proc.
func ReadMemory(proc string) (Memory, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return Memory{}, fmt.Errorf("read how much memory is in use: %w", err)
	}
	info, err := fs.Meminfo()
	if err != nil {
		return Memory{}, fmt.Errorf("read how much memory is in use: %w", err)
	}
	total, available := info.MemTotalBytes, info.MemAvailableBytes
	if total == nil || available == nil {
		return Memory{}, errors.New("read how much memory is in use: the kernel doesn't say")
	}
	return Memory{Used: *total - min(*available, *total), Total: *total}, nil
}
