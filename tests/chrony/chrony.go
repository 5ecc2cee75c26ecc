// Package chrony runs chronyd for tests: a time server that serves this host's time.
// It comes from a locked Debian package, with its libraries.
package chrony

import (
	"path/filepath"
	"testing"

	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/server"
)

// files is set by Bazel to the files of the package chrony.
var files string

// Start runs a chronyd in a namespace for the test's time. It answers on port 123
// without asking others for the time, and leaves the host's clock alone.
func Start(t testing.TB, n *namespace.Namespace) *server.Server {
	t.Helper()
	return server.Start(t, n, files, "chrony/usr/sbin/chronyd",
		// In the foreground, with the clock and the system calls left alone.
		"-d", "-x", "-F", "0", "-u", "root",
		"local stratum 1", "allow all", "cmdport 0", "bindcmdaddress /", "pidfile "+filepath.Join(t.TempDir(), "pid"))
}
