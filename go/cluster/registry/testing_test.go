package registry

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"slices"
	"time"

	"pgregory.net/rapid"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys"
)

// cluster is the cluster of these tests.
func cluster() keys.ClusterID { return keys.ClusterID{0xc1} }

// at returns a moment so many seconds after some other.
func at(second int) time.Time { return time.Date(2026, 10, 28, 9, 0, second, 0, time.UTC) }

func parse(t rapid.TB, s string) address.Address {
	t.Helper()
	a, err := address.Parse(s, address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// newNode returns a node whose key is made of a byte, enrolled in the second of that
// number.
func newNode(t rapid.TB, name string, fill byte) Node {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	n, err := NewNode(name, key, volumeid.ID{fill}, at(int(fill)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// example has a node of which everything is known, one of which nothing is, and one
// that was removed.
func example(t rapid.TB) *Registry {
	t.Helper()
	r := New(cluster())
	full, gone := newNode(t, "home-1", 1), newNode(t, "colo-1", 3)
	full.SetAddress(parse(t, "192.0.2.10"), at(10))
	full.Endpoint.Set(parse(t, "home.example.net:51820"), at(11))
	full.PeerAPI.Set(parse(t, "[2001:db8::1]:7443"), at(12))
	full.MeshKey.Set(meshkey.Public{9}, at(13).Add(time.Nanosecond))
	full.Attestation.Set(Attestation{SEVSNP: true, Measurement: Measurement{7}}, at(14))
	for _, n := range []Node{full, newNode(t, "web-1", 2), gone} {
		if err := r.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	r.Remove(gone.ID)
	r.Serial, r.Membership, r.Revocations = 5, 4, 1
	return r
}

func encode(t rapid.TB, r *Registry) string {
	t.Helper()
	b, err := r.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// adding returns a change that enters a node, whose key is made of a byte.
func adding(t rapid.TB, name string, fill byte) func(*Registry) error {
	return func(r *Registry) error { return r.Add(newNode(t, name, fill)) }
}

// update changes a registry.
func update(t rapid.TB, objects Objects, change func(*Registry) error) *Registry {
	t.Helper()
	r, err := Update(context.Background(), objects, cluster(), change)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// load reads a registry.
func load(t rapid.TB, objects Objects) *Registry {
	t.Helper()
	r, err := Load(context.Background(), objects, cluster())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// wantNodes checks which nodes a registry has, by their names in order.
func wantNodes(t rapid.TB, r *Registry, want ...string) {
	t.Helper()
	var names []string
	for _, n := range r.Names() {
		names = append(names, n.Name)
	}
	if !slices.Equal(names, want) {
		t.Errorf("the nodes are %q, want %q", names, want)
	}
}
