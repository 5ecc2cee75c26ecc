package reaper

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// childInfo is the kernel's siginfo_t as waitid(2) fills it in on 64-bit
// machines: three ints, padding, and then the union that begins with the
// process number. golang.org/x/sys/unix leaves the union to its users.
type childInfo struct {
	info unix.Siginfo
}

// unionOffset is where the union begins.
const unionOffset = 16

// waitid looks for any child. Without one that ended, pid is 0 afterwards.
func (c *childInfo) waitid(options int) error {
	c.info = unix.Siginfo{}
	return unix.Waitid(unix.P_ALL, 0, &c.info, options, nil)
}

// pid returns the number of the child that was found.
func (c *childInfo) pid() int {
	return int(*(*int32)(unsafe.Add(unsafe.Pointer(&c.info), unionOffset)))
}
