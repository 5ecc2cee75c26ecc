package registry

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys"
)

func merge(t rapid.TB, a, b *Registry) string {
	t.Helper()
	merged, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	text, err := merged.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anything draws a registry with a few nodes and moments, so that those of several
// meet.
func anything(t *testing.T, draw *rapid.T) *Registry {
	r := New(cluster())
	small := rapid.IntRange(0, 2)
	r.Serial = uint64(small.Draw(draw, "serial"))
	r.Membership = uint64(small.Draw(draw, "membership"))
	r.Revocations = uint64(small.Draw(draw, "revocations"))
	addresses := []address.Address{{}, parse(t, "192.0.2.1"), parse(t, "192.0.2.2")}
	set := func(s *Setting[address.Address], label string) {
		if second := small.Draw(draw, label); second > 0 {
			*s = Setting[address.Address]{addresses[small.Draw(draw, label)], at(second)}
		}
	}
	for fill := byte(1); fill <= 3; fill++ {
		n := newNode(t, []string{"a", "b", "c"}[small.Draw(draw, "name")], fill)
		n.Volume = volumeid.ID{byte(small.Draw(draw, "volume"))}
		n.Enrolled = at(small.Draw(draw, "enrolled"))
		set(&n.Address, "address")
		set(&n.Endpoint, "endpoint")
		set(&n.PeerAPI, "peer API")
		if small.Draw(draw, "mesh") > 0 {
			n.MeshKey = Setting[meshkey.Public]{meshkey.Public{byte(small.Draw(draw, "key"))}, at(small.Draw(draw, "changed") + 1)}
		}
		switch small.Draw(draw, "state") {
		case 0:
			r.Nodes = append(r.Nodes, n)
		case 1:
			r.Revoked = r.Revoked.WithNode(n.ID)
		}
	}
	if second := small.Draw(draw, "admins"); second > 0 {
		r.Revoked = r.Revoked.WithAdmins(at(second))
	}
	merged, err := Merge(r, New(cluster())) // In order.
	if err != nil {
		draw.Fatal(err)
	}
	return merged
}

func TestMergeLaws(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		a, b, c := anything(t, draw), anything(t, draw), anything(t, draw)
		self, err := a.Encode()
		if err != nil {
			draw.Fatal(err)
		}
		if merge(draw, a, a) != string(self) {
			draw.Error("merging something with itself changes it")
		}
		if merge(draw, a, b) != merge(draw, b, a) {
			draw.Error("the order of two makes a difference")
		}
		ab, err := Merge(a, b)
		if err != nil {
			draw.Fatal(err)
		}
		bc, err := Merge(b, c)
		if err != nil {
			draw.Fatal(err)
		}
		if merge(draw, ab, c) != merge(draw, a, bc) {
			draw.Error("the order of three makes a difference")
		}
		if merge(draw, ab, a) != merge(draw, a, b) {
			draw.Error("merging again changes something")
		}
	})
}

func TestMerge(t *testing.T) {
	a, b := example(t), example(t)
	home := a.Nodes[0].ID
	for i := range a.Nodes {
		if a.Nodes[i].Name == "home-1" {
			home = a.Nodes[i].ID
			a.Nodes[i].Endpoint.Set(address.Address{}, at(30))
			b.Nodes[i].MeshKey.Set(meshkey.Public{8}, at(31))
			b.Nodes[i].Endpoint.Set(parse(t, "198.51.100.7:1"), at(29))
		}
	}
	if err := a.Add(newNode(t, "new-1", 8)); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(newNode(t, "new-1", 9)); err != nil {
		t.Fatal(err)
	}
	b.Remove(newNode(t, "web-1", 2).ID)
	b.Membership++
	merged, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	n, err := merged.Find(home.String())
	if err != nil || !n.Endpoint.Value.IsZero() || n.MeshKey.Value != (meshkey.Public{8}) {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := merged.Find("web-1"); !errors.Is(err, ErrUnknown) {
		t.Errorf("a node that was removed: %v", err)
	}
	if len(merged.Nodes) != 3 || merged.Membership != 5 {
		t.Errorf("%+v", merged)
	}
	if _, err := Merge(a, New(keys.ClusterID{})); err == nil {
		t.Error("two clusters were merged")
	}
}
