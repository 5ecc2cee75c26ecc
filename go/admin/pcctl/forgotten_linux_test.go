package pcctl

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// rolledBack enrolls home-1 and colo-1, and removes the latter, which the storage then
// forgets. It returns the ID and volume of colo-1.
func rolledBack(t *testing.T, s *trial) (pki.NodeID, *statetest.Volume) {
	t.Helper()
	volume := newVolume(t)
	kept, removed := lifecycletest.Start(t, newVolume(t), nil), lifecycletest.Start(t, volume, nil)
	s.want(0, "node", "enroll", kept.Address, kept.EnrollmentCode(), "home-1")
	s.want(0, "node", "enroll", removed.Address, removed.EnrollmentCode(), "colo-1")
	id := s.find("colo-1").ID
	undo := s.snapshot()
	s.want(0, "node", "rm", "colo-1")
	undo()
	if s.find("colo-1").ID != id {
		t.Fatal("the registry was not put back")
	}
	if err := removed.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	return id, volume
}

func (s *trial) wantForgotten() {
	s.t.Helper()
	if got, want := s.stderr.String(), "warning: node home-1 knows of revocations that the storage has forgotten; they are recorded again\n"; strings.Count(got, want) != 1 {
		s.t.Errorf("%s", got)
	}
}

// TestBundleAfterRollback: a new node learns at its first start who was removed, though
// the storage has forgotten it.
func TestBundleAfterRollback(t *testing.T) {
	s := newNodes(t)
	id, _ := rolledBack(t, s)
	b := s.provisioned()
	s.wantForgotten()
	signed, err := document.Open(s.authority(), document.Revocations, b.Revocations)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := revocation.Decode(signed.Body); err != nil || !list.HasNode(id) {
		t.Errorf("the bundle revokes %+v, %v", list, err)
	}
	if list := s.revocations("home-1"); !list.HasNode(id) {
		t.Errorf("home-1 trusts what was removed: %+v", list)
	}
	if signed, err = document.Open(s.authority(), document.Membership, b.Membership); err != nil || strings.Contains(string(signed.Body), "colo-1") {
		t.Errorf("the bundle has the members %s, %v", signed.Body, err)
	}
}

// TestUnlockAfterRollback: whoever has a node that was removed doesn't get it unlocked
// because the storage has forgotten that.
func TestUnlockAfterRollback(t *testing.T) {
	s := newNodes(t)
	_, volume := rolledBack(t, s)
	volume.Lock()
	stolen := lifecycletest.Start(t, volume, nil)
	code := stolen.UnlockCode()
	s.want(1, "node", "unlock", "colo-1", code, stolen.Address)
	s.wantForgotten()
	if got := s.stderr.String(); !strings.HasSuffix(got, "pcctl: the cluster's registry has no such node: \"colo-1\"\n") {
		t.Errorf("%s", got)
	}
	if now := stolen.UnlockCode(); now != code || strings.Contains(stolen.Log.String(), "unlocked") {
		t.Errorf("it is unlocked:\n%s", stolen.Log)
	}
}

// TestListsAtAnAddress: where a node is, its peers had from its endpoint, so that no new
// membership list is needed when pcctl is told. But nobody has given it the lists since.
func TestListsAtAnAddress(t *testing.T) {
	s := newNodes(t)
	other := lifecycletest.Start(t, newVolume(t), nil)
	s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "home-1")
	b := s.provisioned("--endpoint", "127.77.31.7:51820")
	node := lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Bundle = func(_ context.Context, check join.Check) (*joinbundle.Bundle, error) { return b, check(b) }
		c.Listen = func(context.Context) (net.Listener, error) { return net.Listen("tcp", "127.77.31.7:7443") }
	})
	node.IsMember()
	id := s.find("home-1").ID
	s.want(0, "node", "rm", "home-1")
	serial := s.registry().Membership
	s.want(0, "node", "addr", "web-1", "127.77.31.7")
	s.wantStdout("node web-1 is at 127.77.31.7:7443\n")
	s.wantStderr("")
	if list := s.revocations("web-1"); !list.HasNode(id) {
		t.Errorf("it trusts what was removed: %+v", list)
	}
	r := s.registry()
	s.want(0, "node", "info", "--json", "web-1")
	if got, want := s.stdout.String(), fmt.Sprintf(`"membership_serial":%d,"revocations_serial":%d}`, serial, r.Revocations); r.Membership != serial || !strings.Contains(got, want) {
		t.Errorf("the registry has the membership serial %d after %d, and the node\n%s, want %s", r.Membership, serial, got, want)
	}
	// What it has been told it isn't told again.
	s.want(0, "node", "addr", "web-1", "127.77.31.7")
	if err := node.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	s.want(0, "node", "addr", "web-1", "127.77.31.7")
	s.wantStderr("")
}

// provisioned provisions web-1 and returns its bundle.
func (s *trial) provisioned(options ...string) *joinbundle.Bundle {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "web-1")
	s.want(0, append(append([]string{"node", "provision"}, options...), "web-1", file)...)
	text, err := os.ReadFile(file)
	if err != nil {
		s.t.Fatal(err)
	}
	b, err := joinbundle.Decode(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return b
}

// authority is the cluster's, as this admin's machine has it.
func (s *trial) authority() *pki.Authority {
	s.t.Helper()
	admin, err := credentials.Load(configuration.Directory(s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	return admin.Authority
}
