package pcctl

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/store/storetest"
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

// TestRegistryOfAnotherAdmin: while a node makes its volume, another admin writes what was
// read of the registry before, and is cut off.
func TestRegistryOfAnotherAdmin(t *testing.T) {
	s := newNodes(t)
	volume := newVolume(t)
	volume.Creating = func(ctx context.Context) error {
		empty, err := registry.New(s.bed.Cluster.ID).Encode()
		if err != nil {
			return err
		}
		return session.SystemObjects{Store: s.bed.Open()}.Write(ctx, registry.Folder+"other", empty)
	}
	node := lifecycletest.Start(t, volume, nil)
	s.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	s.wantNode("home-1")
}

// TestManyAdminsAtOnce: each has a store of its own at the same locations, and enters nodes
// while the others do.
func TestManyAdminsAtOnce(t *testing.T) {
	const admins, nodes = 6, 4
	bed := storetest.New(t, 3)
	bed.Init()
	var group errgroup.Group
	for admin := range admins {
		objects := session.SystemObjects{Store: bed.Open()}
		group.Go(func() error {
			for i := range nodes {
				n, err := invent(admin*nodes + i)
				if err != nil {
					return err
				}
				_, err = registry.Update(t.Context(), objects, bed.Cluster.ID, func(r *registry.Registry) error { return r.Add(n) })
				if err != nil {
					return err
				}
				r, err := registry.Load(t.Context(), objects, bed.Cluster.ID)
				if err != nil {
					return err
				}
				if _, err := r.Find(n.Name); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	r, err := registry.Load(t.Context(), session.SystemObjects{Store: bed.Open()}, bed.Cluster.ID)
	if err != nil || len(r.Nodes) != admins*nodes {
		t.Errorf("of %d nodes there are %d, %v", admins*nodes, len(r.Nodes), err)
	}
}

// TestProvisionedAtOnce: admins who provision nodes at the same moment have the registry and
// its lists change under each other's hands. All nodes are in it, and in the newest list.
func TestProvisionedAtOnce(t *testing.T) {
	s := newNodes(t)
	var group errgroup.Group
	var want []string
	var admins []*trial
	for i := range 4 {
		admin, name := s.another(), fmt.Sprintf("web-%d", i)
		admins, want = append(admins, admin), append(want, name)
		bundle := filepath.Join(t.TempDir(), name)
		group.Go(func() error {
			if status := admin.run(t.Context(), "node", "provision", name, bundle); status != 0 {
				return fmt.Errorf("pcctl exits with %d: %s", status, admin.stderr.String())
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	var names []string
	r := s.registry()
	for _, n := range r.Names() {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the nodes are %q", names)
	}
	newest := fmt.Sprintf("mesh membership: 4 nodes (serial %d)\n", r.Membership)
	if !slices.ContainsFunc(admins, func(a *trial) bool { return strings.Contains(a.stdout.String(), newest) }) {
		t.Errorf("nobody says %q", newest)
	}
}

// invent returns a node with a number.
func invent(number int) (registry.Node, error) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(number)}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	return registry.NewNode(fmt.Sprintf("node-%d", number), key, volumeid.ID{byte(number)}, time.Now())
}

// TestStorageOfTheRegistry: commands on the storage leave the registry alone, and what is
// left of its earlier objects goes with what is left of others.
func TestStorageOfTheRegistry(t *testing.T) {
	s, _ := newLogin(t)
	objects := session.SystemObjects{Store: s.bed.Open()}
	for number := range 3 {
		n, err := invent(number)
		if err != nil {
			t.Fatal(err)
		}
		_, err = registry.Update(t.Context(), objects, s.bed.Cluster.ID, func(r *registry.Registry) error { return r.Add(n) })
		if err != nil {
			t.Fatal(err)
		}
	}
	want := s.registry()
	s.want(0, "ls")
	s.wantStdout("")
	s.want(0, "ls", ".powercloud/")
	if got := s.stdout.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "  "+registry.Folder) {
		t.Errorf("listed are %q", got)
	}
	s.want(0, "check")
	if got := s.stdout.String(); !strings.HasPrefix(got, "1 objects, 2 deleted, 1 chunks in use, 2 unreferenced (reclaimed by gc)\n") {
		t.Errorf("checked is %q", got)
	}
	for range 2 {
		s.want(0, "gc", "--grace", "0s")
		s.want(0, "gc", "--tombstones", "--grace", "0s")
	}
	s.want(0, "repair", "--verify")
	s.want(0, "check")
	if got := s.stdout.String(); !strings.HasPrefix(got, "1 objects, 0 deleted, 1 chunks in use, 0 unreferenced (reclaimed by gc)\n") {
		t.Errorf("checked is %q", got)
	}
	if got := s.registry(); !reflect.DeepEqual(got, want) {
		t.Errorf("the registry is %+v, was %+v", got, want)
	}
}
