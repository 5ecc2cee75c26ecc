package files

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// obeyModes takes from the test's thread, until the test ends, root's rights to
// read whatever the mode of a file says.
func obeyModes(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	fewer := all
	fewer[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	if err := unix.Capset(&header, &fewer[0]); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Capset(&header, &all[0]); err != nil {
			t.Error(err) // The thread stays locked, and ends with the test.
			return
		}
		runtime.UnlockOSThread()
	})
}
