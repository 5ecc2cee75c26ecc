package pcctl

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/admin/credentials"
	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// rolledBack enrolls home-1 and colo-1, and after something else, if anything, removes the
// latter, which the storage then forgets. It returns the ID and volume of colo-1.
func rolledBack(t *testing.T, s *trial, before func(*trial)) (pki.NodeID, *statetest.Volume) {
	t.Helper()
	volume := newVolume(t)
	kept, removed := lifecycletest.Start(t, newVolume(t), nil), lifecycletest.Start(t, volume, nil)
	s.want(0, "node", "enroll", kept.Address, kept.EnrollmentCode(), "home-1")
	s.want(0, "node", "enroll", removed.Address, removed.EnrollmentCode(), "colo-1")
	if before != nil {
		before(s)
	}
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
	id, _ := rolledBack(t, s, nil)
	b := s.provisioned()
	s.wantForgotten()
	if list := s.opened(b.Revocations); !list.HasNode(id) {
		t.Errorf("the bundle revokes %+v", list)
	}
	if list := s.revocations("home-1"); !list.HasNode(id) {
		t.Errorf("home-1 trusts what was removed: %+v", list)
	}
	if signed, err := document.Open(s.authority(), document.Membership, b.Membership); err != nil || strings.Contains(string(signed.Body), "colo-1") {
		t.Errorf("the bundle has the members %s, %v", signed.Body, err)
	}
}

// TestUnlockAfterRollback: whoever has a node that was removed doesn't get it unlocked
// because the storage has forgotten that.
func TestUnlockAfterRollback(t *testing.T) {
	s := newNodes(t)
	id, volume := rolledBack(t, s, nil)
	volume.Lock()
	stolen := lifecycletest.Start(t, volume, nil)
	code := stolen.UnlockCode()
	s.want(1, "node", "unlock", "colo-1", code, stolen.Address)
	s.wantForgotten()
	if got := s.stderr.String(); !strings.HasSuffix(got, "pcctl: the cluster's registry has no such node: \"colo-1\"\n") {
		t.Errorf("%s", got)
	}
	if list := s.revocations("home-1"); !list.HasNode(id) {
		t.Errorf("home-1 trusts what was removed: %+v", list)
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
	if err := node.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	// It may have come back with what it had before.
	s.want(0, "node", "addr", "web-1", "127.77.31.7")
	if got := s.stderr.String(); !strings.HasPrefix(got, "warning: node web-1: dial tcp 127.77.31.7:7443: ") {
		t.Errorf("%s", got)
	}
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

// TestForgottenRevocations: the storage is put back to what it was before a node was
// removed. Whoever publishes lists then learns of the removal from other nodes.
func TestForgottenRevocations(t *testing.T) {
	for title, before := range map[string]func(*trial){
		"something was revoked before": func(s *trial) { s.provisioned() },
		"nothing was":                  nil,
	} {
		t.Run(title, func(t *testing.T) {
			s := newNodes(t)
			id, _ := rolledBack(t, s, before)
			other := lifecycletest.Start(t, newVolume(t), nil)
			s.want(0, "node", "enroll", other.Address, other.EnrollmentCode(), "aws-1")
			s.wantForgotten()
			if r := s.registry(); !r.Revoked.HasNode(id) || len(r.Nodes) != len(r.Names()) || slices.ContainsFunc(r.Nodes, func(n registry.Node) bool { return n.ID == id }) {
				t.Errorf("the registry has %+v", r)
			}
			for _, name := range []string{"home-1", "aws-1"} {
				if list := s.revocations(name); !list.HasNode(id) {
					t.Errorf("%s trusts what was removed: %+v", name, list)
				}
			}
		})
	}
}

// TestRemoveForgotten: the storage is put back to what it was before a node was removed,
// and another one is removed. The only node that knows of the first removal misses the
// revocation list, and answers when the membership list comes. All nodes learn of both.
func TestRemoveForgotten(t *testing.T) {
	s := newNodes(t)
	nodes, cables := map[string]*lifecycletest.Node{}, map[string]*cable{}
	for _, name := range []string{"colo-1", "forgotten", "goes", "home-1"} {
		nodes[name] = lifecycletest.Start(t, newVolume(t), nil)
		cables[name] = newCable(t, nodes[name].Address)
		s.want(0, "node", "enroll", cables[name].listener.Addr().String(), nodes[name].EnrollmentCode(), name)
	}
	forgotten, goes := s.find("forgotten").ID, s.find("goes").ID
	undo := s.snapshot()
	cables["goes"].cutAt(1, before, nil)
	cables["home-1"].cutAt(1, before, nil)
	cables["forgotten"].cutAt(1, before, nil)
	s.want(0, "node", "rm", "forgotten")
	undo()
	cables["goes"].cutAt(0, before, nil)
	cables["home-1"].cutAt(0, before, nil)
	missed := cables["colo-1"]
	missed.cutAt(1, before, func() { missed.cutAt(0, before, nil) })

	s.want(0, "node", "rm", "goes")
	r := s.registry()
	if !r.Revoked.HasNode(forgotten) || !r.Revoked.HasNode(goes) {
		t.Errorf("the registry revokes %+v", r.Revoked)
	}
	for _, name := range []string{"colo-1", "home-1"} {
		if list := s.revocations(name); !list.Equal(r.Revoked) {
			t.Errorf("%s revokes %+v, the registry %+v", name, list, r.Revoked)
		}
	}
	want := fmt.Sprintf("NODE    REVOCATION LIST\ncolo-1  serial %d\nhome-1  serial %d\n", r.Revocations, r.Revocations)
	if got := s.stdout.String(); strings.Count(got, "REVOCATION LIST") != 2 || !strings.HasSuffix(got, want) {
		t.Errorf("%s", got)
	}
	if got := s.stderr.String(); strings.Count(got, "warning: node colo-1 knows of revocations that the storage has forgotten; they are recorded again\n") != 1 {
		t.Errorf("%s", got)
	}
}

// revocations returns what a node has revoked.
func (s *trial) revocations(name string) revocation.List {
	s.t.Helper()
	admin, err := credentials.Load(configuration.Directory(s.config))
	if err != nil {
		s.t.Fatal(err)
	}
	n := s.find(name)
	c := client.New(client.Peer{Address: n.Address.Value, Authority: admin.Authority, ID: n.ID}, admin.TLS(), time.Now)
	defer c.Close()
	signed, err := client.Do(s.t.Context(), c, route.GetRevocations(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.opened(signed.Signed)
}

// opened returns what a signed revocation list revokes.
func (s *trial) opened(signed []byte) revocation.List {
	s.t.Helper()
	opened, err := document.Open(s.authority(), document.Revocations, signed)
	if err != nil {
		s.t.Fatal(err)
	}
	list, err := revocation.Decode(opened.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return list
}

// snapshot returns what puts every location back to what it is now.
func (s *trial) snapshot() func() {
	s.t.Helper()
	var undo []func()
	for i := range s.bed.Paths {
		undo = append(undo, s.bed.Snapshot(i))
	}
	return func() {
		for _, roll := range undo {
			roll()
		}
		if err := os.RemoveAll(filepath.Join(s.config, "catalog")); err != nil {
			s.t.Fatal(err)
		}
	}
}
