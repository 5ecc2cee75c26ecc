// Package server runs servers of locked Debian packages for tests, each in a network
// namespace.
package server

import (
	"context"
	"os/exec"
	"path"
	"syscall"
	"testing"

	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/output"
	"powercloud.unidatum.com/tools/debian/program"
)

// Server is a server that runs.
type Server struct {
	name string
	cmd  *exec.Cmd
	log  output.Text
}

// Start runs a server in a namespace for the test's time. Files is what $(rootpaths)
// says of its package and of those that it needs; the program is named by its package
// and its path in that, as in "dnsmasq-base/usr/sbin/dnsmasq". Without Bazel, which
// unpacks it, the test is skipped.
func Start(t testing.TB, n *namespace.Namespace, files, name string, arguments ...string) *Server {
	t.Helper()
	packages, ok, err := program.Packages(files, name)
	if err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skipf("only Bazel unpacks %s, which this test needs", path.Base(name))
	}
	s := &Server{name: path.Base(name)}
	// The server outlives the test's context, to be ended in order.
	if s.cmd, err = program.Command(context.Background(), packages, name, arguments...); err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := n.Do(s.cmd.Start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop(t)
		if t.Failed() {
			t.Logf("%s said:\n%s", s.name, s.Log())
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
		t.Errorf("%s ended by itself: %v\n%s", s.name, err, s.Log())
	}
	// It ends with status 0, or with a signal's.
	_ = s.cmd.Wait()
}

// Log returns what it has said so far.
func (s *Server) Log() string { return s.log.String() }
