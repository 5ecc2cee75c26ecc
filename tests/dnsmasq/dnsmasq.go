// Package dnsmasq runs dnsmasq for tests: a DHCP server for both protocols, a
// router that announces itself, and a name server. It comes from a locked Debian
// package, with its libraries.
package dnsmasq

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/output"
	"powercloud.unidatum.com/tools/lint"
)

// files is set by Bazel to the files of the package dnsmasq-base.
var files string

// command returns the program's arguments so far: Debian's own loader runs it
// with Debian's own libraries, whatever the machine has.
func command(t testing.TB) []string {
	t.Helper()
	for _, file := range strings.Fields(files) {
		if !strings.HasSuffix(file, "/dnsmasq-base/usr/sbin/dnsmasq") {
			continue
		}
		program, err := lint.Runfile(file)
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.TrimSuffix(program, "/dnsmasq-base/usr/sbin/dnsmasq")
		var libraries []string
		for _, pattern := range []string{"/*/lib/x86_64-linux-gnu", "/*/usr/lib/x86_64-linux-gnu"} {
			found, err := filepath.Glob(packages + pattern)
			if err != nil {
				t.Fatal(err)
			}
			libraries = append(libraries, found...)
		}
		loader := packages + "/libc6/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
		return []string{loader, "--library-path", strings.Join(libraries, ":"), program}
	}
	t.Skip("Bazel unpacks dnsmasq for this test: bazel test //go/node/network:all")
	return nil
}

// Server is a dnsmasq that runs.
type Server struct {
	cmd *exec.Cmd
	log output.Text
}

// Start runs a dnsmasq in a namespace for the test's time, with arguments beside
// those that keep it from touching anything of the machine's.
func Start(t testing.TB, n *namespace.Namespace, arguments ...string) *Server {
	t.Helper()
	line := append(command(t),
		"--no-daemon", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--no-ping", "--log-dhcp", "--log-queries",
		"--dhcp-leasefile="+filepath.Join(t.TempDir(), "leases"), "--pid-file=")
	s := &Server{cmd: exec.Command(line[0], append(line[1:], arguments...)...)}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := n.Do(s.cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t)
		if t.Failed() {
			t.Logf("dnsmasq said:\n%s", s.Log())
		}
	})
	return s
}

// Stop ends it. It may have been stopped before.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.cmd.ProcessState != nil {
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Errorf("dnsmasq ended by itself: %v\n%s", err, s.Log())
	}
	// It ends with status 0, or with a signal's.
	_ = s.cmd.Wait()
}

// Log returns what dnsmasq has said so far.
func (s *Server) Log() string { return s.log.String() }
