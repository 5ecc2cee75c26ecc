// Package dnsmasq runs dnsmasq for tests: a DHCP server for both protocols, a
// router that announces itself, and a name server. It comes from a locked Debian
// package, with its libraries.
package dnsmasq

import (
	"path/filepath"
	"testing"

	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/server"
)

// files is set by Bazel to the files of the package dnsmasq-base.
var files string

// Start runs a dnsmasq in a namespace for the test's time, with arguments beside
// those that keep it from touching anything of the machine's.
func Start(t testing.TB, n *namespace.Namespace, arguments ...string) *server.Server {
	t.Helper()
	return server.Start(t, n, files, "dnsmasq-base/usr/sbin/dnsmasq", append([]string{
		"--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--no-ping", "--log-dhcp", "--log-queries",
		"--dhcp-leasefile=" + filepath.Join(t.TempDir(), "leases"), "--pid-file=",
	}, arguments...)...)
}
