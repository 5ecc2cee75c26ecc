package registry

import (
	"errors"
	"testing"
	"time"

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

func TestKeep(t *testing.T) {
	store := &memory{}
	r, err := Load(t.Context(), store, cluster())
	if err != nil || r.Serial != 0 || len(r.Nodes) != 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := Keep(t.Context(), store, r); err != nil || store.writes != 0 {
		t.Errorf("nothing new was written %d times: %v", store.writes, err)
	}
	add := func(name string, fill byte) func(*Registry) error {
		return func(r *Registry) error { return r.Add(newNode(t, name, fill)) }
	}
	if r, err = Update(t.Context(), store, cluster(), add("home-1", 1)); err != nil || r.Serial != 1 || store.writes != 1 {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err = Update(t.Context(), store, cluster(), add("home-1", 2)); err == nil || store.writes != 1 {
		t.Errorf("%v, %d writes", err, store.writes)
	}
	if again, err := Load(t.Context(), store, cluster()); err != nil || encode(t, again) != encode(t, r) {
		t.Errorf("%+v, %v", again, err)
	}
	if _, err := Load(t.Context(), store, keys.ClusterID{}); !errors.Is(err, ErrRegistry) {
		t.Errorf("another cluster's: %v", err)
	}
}

// TestKeepNextToAnother: another admin writes between reading and writing, and after.
func TestKeepNextToAnother(t *testing.T) {
	store := &memory{}
	other := New(cluster())
	if err := other.Add(newNode(t, "other", 7)); err != nil {
		t.Fatal(err)
	}
	store.content = []byte(encode(t, New(cluster())))
	mine, err := Update(t.Context(), store, cluster(), func(r *Registry) error { return r.Add(newNode(t, "mine", 1)) })
	if err != nil {
		t.Fatal(err)
	}
	// The other has read before, and writes what it made of that.
	store.content = []byte(encode(t, other))
	kept, err := Keep(t.Context(), store, mine)
	if err != nil || len(kept.Nodes) != 2 {
		t.Fatalf("%+v, %v", kept, err)
	}
	if stored, err := Load(t.Context(), store, cluster()); err != nil || len(stored.Nodes) != 2 || stored.Serial <= mine.Serial {
		t.Errorf("%+v, %v", stored, err)
	}
}

// TestKeepOverwritten: what was written is replaced before it is read again, at first
// once, then always.
func TestKeepOverwritten(t *testing.T) {
	lose := func(times int) (*memory, error) {
		store := &memory{}
		empty := []byte(encode(t, New(cluster())))
		overwriting := &overwriting{memory: store, empty: empty, times: times}
		_, err := Update(t.Context(), overwriting, cluster(), func(r *Registry) error { return r.Add(newNode(t, "mine", 1)) })
		return store, err
	}
	store, err := lose(keepTries - 1)
	if err != nil || store.writes != keepTries {
		t.Errorf("%v after %d writes", err, store.writes)
	}
	if store, err = lose(keepTries); !errors.Is(err, ErrContended) || store.writes != keepTries {
		t.Errorf("%v after %d writes", err, store.writes)
	}
}

func TestKeepFails(t *testing.T) {
	broken := errors.New("broken")
	change := func(r *Registry) error { return r.Add(newNode(t, "mine", 1)) }
	if _, err := Update(t.Context(), &memory{readErr: broken}, cluster(), change); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := Update(t.Context(), &memory{writeErr: broken}, cluster(), change); !errors.Is(err, broken) {
		t.Error(err)
	}
	// What can't be read is never replaced.
	store := &memory{content: []byte("something else")}
	if _, err := Update(t.Context(), store, cluster(), change); !errors.Is(err, ErrRegistry) || store.writes != 0 {
		t.Errorf("%v after %d writes", err, store.writes)
	}
	if _, err := Update(t.Context(), &memory{}, cluster(), func(*Registry) error { return broken }); err != broken {
		t.Error(err)
	}
}

// TestTimesAreKept: the moment of a change survives being written.
func TestTimesAreKept(t *testing.T) {
	store := &memory{}
	now := time.Now()
	want, err := Update(t.Context(), store, cluster(), func(r *Registry) error {
		n, err := NewNode("home-1", newNode(t, "home-1", 1).Key, volumeid.ID{}, now)
		if err != nil {
			return err
		}
		n.SetAddress(parse(t, "192.0.2.10"), now)
		return r.Add(n)
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Load(t.Context(), store, cluster())
	if err != nil || !got.Nodes[0].Enrolled.Equal(now) || got.Nodes[0].Address != want.Nodes[0].Address {
		t.Errorf("%+v, %v", got, err)
	}
}
