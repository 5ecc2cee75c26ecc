package keys

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// preferHugePages has the next allocation of about size bytes use huge pages where
// the system has them to give: filling 256 MiB costs tens of thousands of page
// faults otherwise, which take longer than Argon2id itself.
//
// The memory that argon2 allocates can't be reached from outside. So as much, and
// a little more for what else may be allocated meanwhile, is allocated before it
// and freed again without being touched: the runtime takes the same addresses for
// the next allocation, and the system keeps the advice by address. Should either
// do otherwise, nothing but time is lost.
func preferHugePages(size int) {
	const spare = 8 << 20
	area := make([]byte, size+spare)
	_ = unix.Madvise(area, unix.MADV_HUGEPAGE)
	runtime.KeepAlive(area)
	runtime.GC()
}
