//go:build linux && (amd64 || arm64)

package crash_test

import (
	"os"
	"testing"

	"powercloud.unidatum.com/go/admin/pcctl"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

// TestMain is also pcctl, when it is started under that name: what is killed
// is this program.
func TestMain(m *testing.M) {
	ptrace.Launcher()
	if os.Args[0] == "pcctl" {
		os.Exit(pcctl.Main())
	}
	os.Exit(m.Run())
}
