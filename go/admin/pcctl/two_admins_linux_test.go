package pcctl

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
)

// another returns another admin of the same cluster, with a machine of their own.
func (s *trial) another() *trial {
	s.t.Helper()
	return &trial{t: s.t, bed: s.bed, environment: s.environment, config: filepath.Join(s.t.TempDir(), "another")}
}

// TestTwoAdminsAtOnce: while a node makes its volume, another admin enrolls another one.
// Both nodes come to have one list with both.
func TestTwoAdminsAtOnce(t *testing.T) {
	one := newNodes(t)
	other := one.another()
	second := newVolume(t)
	node := lifecycletest.Start(t, second, nil)
	code := node.EnrollmentCode()
	bundle := filepath.Join(t.TempDir(), "bundle")
	first := newVolume(t)
	first.Creating = func(context.Context) error {
		if other.run(t.Context(), "node", "enroll", node.Address, code, "colo-1") != 0 {
			return errors.New(other.stderr.String())
		}
		other.run(t.Context(), "node", "provision", "home-1", bundle)
		if !strings.Contains(other.stderr.String(), `a node named "home-1" is just being enrolled`) {
			t.Errorf("the other admin reads %q", other.stderr.String())
		}
		return nil
	}
	slow := lifecycletest.Start(t, first, nil)
	one.want(0, "node", "enroll", slow.Address, slow.EnrollmentCode(), "home-1")
	if got := one.stdout.String(); !strings.HasSuffix(got, "mesh membership: 2 nodes (serial 2)\nNODE    MEMBERSHIP\ncolo-1  serial 2\nhome-1  serial 2\n") {
		t.Errorf("%s", got)
	}
	for _, folder := range []string{first.Folder, second.Folder} {
		kept, err := identity.Load(folder)
		if err != nil {
			t.Fatal(err)
		}
		if i, _ := kept.Current(); len(i.Members.Nodes) != 2 || i.Membership.Serial != 2 {
			t.Errorf("a node has list %d with %+v", i.Membership.Serial, i.Members)
		}
	}
}

// TestOverwrittenRegistry: another admin's write, of what was read before, takes the place
// of this one's while a node makes its volume.
func TestOverwrittenRegistry(t *testing.T) {
	s := newNodes(t)
	volume := newVolume(t)
	volume.Creating = func(ctx context.Context) error {
		empty, err := registry.New(s.bed.Cluster.ID).Encode()
		if err != nil {
			return err
		}
		return session.SystemObjects{Store: s.bed.Open()}.Write(ctx, registry.ObjectName, empty)
	}
	node := lifecycletest.Start(t, volume, nil)
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	s.wantNode("home-1")
}
