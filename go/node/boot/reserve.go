package boot

import (
	"errors"
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/sysctl"
)

const (
	// reserveName is the kernel's parameter for how much memory it keeps free, in KiB.
	reserveName = "vm/min_free_kbytes"
	// reserveShare is the part of all memory that it may keep free at most. With 1 GiB
	// this is what the kernel would choose without large pages, for whose sake it takes
	// a twentieth instead, and half of that once more before it gives any out in
	// peace. From 16 GiB on its own choice is less.
	reserveShare = 256
)

// limitReserve has the kernel, whose parameters are below root, keep no more of total
// bytes free than it needs: large pages are for large memory. A total of 0 is unknown,
// and changes nothing.
func limitReserve(root string, total uint64) error {
	limit := total / reserveShare / 1024
	text, err := sysctl.Get(root, reserveName)
	if errors.Is(err, sysctl.ErrAbsent) || limit == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	reserve, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return fmt.Errorf("read the kernel's parameter %s: %w", reserveName, err)
	}
	if reserve <= limit {
		return nil
	}
	return sysctl.Set(root, reserveName, strconv.FormatUint(limit, 10))
}

// totalMemory returns how much memory this machine's kernel gives out, in bytes; 0 if it
// doesn't say.
func totalMemory() uint64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return uint64(info.Totalram) * uint64(info.Unit)
}
