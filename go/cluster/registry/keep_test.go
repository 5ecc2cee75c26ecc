package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/registry/registrytest"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys"
)

func TestKeep(t *testing.T) {
	store := &registrytest.Objects{}
	r := load(t, store)
	if r.Serial != 0 || len(r.Nodes) != 0 {
		t.Fatalf("%+v", r)
	}
	if _, err := Keep(t.Context(), store, r); err != nil || store.Writes() != 0 {
		t.Errorf("nothing new was written %d times: %v", store.Writes(), err)
	}
	if r = update(t, store, adding(t, "home-1", 1)); r.Serial != 1 || store.Writes() != 1 {
		t.Fatalf("%+v", r)
	}
	if _, err := Update(t.Context(), store, cluster(), adding(t, "home-1", 2)); err == nil || store.Writes() != 1 {
		t.Errorf("%v, %d writes", err, store.Writes())
	}
	if again := load(t, store); encode(t, again) != encode(t, r) {
		t.Errorf("%+v", again)
	}
	r = update(t, store, adding(t, "home-2", 2))
	for range 2 {
		kept, err := Keep(t.Context(), store, r)
		if err != nil || store.Writes() != 2 || encode(t, kept) != encode(t, r) {
			t.Errorf("%+v, %v after %d writes", kept, err, store.Writes())
		}
	}
	if names := store.Names(); len(names) != 1 || !strings.HasPrefix(names[0], Folder) || len(names[0]) != len(Folder)+32 {
		t.Errorf("what is kept is %q", names)
	}
	if _, err := Load(t.Context(), store, keys.ClusterID{}); !errors.Is(err, ErrRegistry) {
		t.Errorf("another cluster's: %v", err)
	}
}

func TestKeepFails(t *testing.T) {
	change := adding(t, "mine", 1)
	for _, op := range []registrytest.Op{registrytest.List, registrytest.Read, registrytest.Write} {
		store := &registrytest.Objects{Hook: func(at registrytest.Op, _ string) registrytest.Outcome {
			if at == op {
				return registrytest.Undone
			}
			return registrytest.Done
		}}
		_, err := Update(t.Context(), store, cluster(), change)
		if !errors.Is(err, registrytest.ErrCut) || !strings.Contains(err.Error(), "the cluster's registry of nodes: ") {
			t.Errorf("%s: %v", op, err)
		}
	}
	broken := errors.New("broken")
	if _, err := Update(t.Context(), &registrytest.Objects{}, cluster(), func(*Registry) error { return broken }); err != broken {
		t.Error(err)
	}
}

// TestUnreadable: an object that can't be read is named, and nothing is written or
// removed.
func TestUnreadable(t *testing.T) {
	foreign := encode(t, New(keys.ClusterID{0xc2}))
	many := map[string]string{}
	for i := range maxObjects + 1 {
		many[fmt.Sprintf("%s%d", Folder, i)] = encode(t, New(cluster()))
	}
	for title, c := range map[string]struct {
		objects map[string]string
		want    string
	}{
		"corrupt":     {map[string]string{Folder + "x": "something else"}, Folder + "x: bad registry of nodes: it doesn't begin as one of version 1; use the pcctl that wrote it"},
		"corrupt old": {map[string]string{OldName: "something else"}, OldName + ": bad registry of nodes: it doesn't begin as one of version 1; use the pcctl that wrote it"},
		"another's":   {map[string]string{Folder + "x": foreign}, Folder + "x: bad registry of nodes: it is of cluster c2000000000000000000000000000000"},
		"too many":    {many, "the cluster's registry of nodes is in 1025 objects, more than the 1024 that are read; 'pcctl check' may tell why earlier ones can't be removed"},
		"too large":   {map[string]string{Folder + "x": strings.Repeat(" ", MaxSize+1)}, fmt.Sprintf("reading the cluster's registry of nodes: %sx is larger than %d bytes", Folder, MaxSize)},
	} {
		store := &registrytest.Objects{}
		for name, content := range c.objects {
			if err := store.Write(t.Context(), name, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := Update(t.Context(), store, cluster(), adding(t, "mine", 1))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v", title, err)
		}
		if len(store.Names()) != len(c.objects) || store.Writes() != len(c.objects) {
			t.Errorf("%s: %d objects after %d writes", title, len(store.Names()), store.Writes())
		}
	}
}

// TestTooMuch: what all objects have together is bounded.
func TestTooMuch(t *testing.T) {
	store := &registrytest.Objects{}
	update(t, store, adding(t, "home-1", 1))
	s := &state{found: map[string]*Registry{}, merged: New(cluster()), size: maxTotal}
	_, err := s.readAll(t.Context(), store, store.Names())
	if err == nil || !strings.Contains(err.Error(), "more than 67108864 bytes together") {
		t.Error(err)
	}
}

// vanishing is a store whose object is gone whenever it is read.
type vanishing struct{ registrytest.Objects }

func (v *vanishing) List(context.Context, string) ([]string, error) {
	return []string{Folder + "x"}, nil
}

func TestContended(t *testing.T) {
	if _, err := Load(t.Context(), &vanishing{}, cluster()); !errors.Is(err, ErrContended) {
		t.Error(err)
	}
}

// TestRemovingFails: what can't be removed is no harm, and is removed with the next.
func TestRemovingFails(t *testing.T) {
	store := &registrytest.Objects{Hook: func(op registrytest.Op, _ string) registrytest.Outcome {
		if op == registrytest.Remove {
			return registrytest.Undone
		}
		return registrytest.Done
	}}
	for fill := byte(1); fill <= 3; fill++ {
		update(t, store, adding(t, fmt.Sprintf("home-%d", fill), fill))
	}
	update(t, store, func(r *Registry) error { r.Remove(newNode(t, "home-2", 2).ID); return nil })
	wantNodes(t, load(t, store), "home-1", "home-3")
	if n := len(store.Names()); n != 4 {
		t.Errorf("there are %d objects", n)
	}
	store.Hook = nil
	if _, err := Keep(t.Context(), store, load(t, store)); err != nil {
		t.Error(err)
	}
	wantNodes(t, load(t, store), "home-1", "home-3")
	if n := len(store.Names()); n != 1 {
		t.Errorf("there are %d objects", n)
	}
}

// TestOldObject: what was one object is read beside the others, and is one of them from
// the next change on.
func TestOldObject(t *testing.T) {
	store := &registrytest.Objects{}
	if err := store.Write(t.Context(), OldName, []byte(encode(t, example(t)))); err != nil {
		t.Fatal(err)
	}
	if r := load(t, store); encode(t, r) != encode(t, example(t)) {
		t.Errorf("%+v", r)
	}
	if names := store.Names(); len(names) != 1 {
		t.Errorf("reading has left %q", names)
	}
	r := update(t, store, adding(t, "new-1", 8))
	if r.Serial != example(t).Serial+1 || r.Membership != example(t).Membership || r.Revocations != example(t).Revocations {
		t.Errorf("%+v", r)
	}
	wantNodes(t, load(t, store), "home-1", "new-1", "web-1")
	if names := store.Names(); len(names) != 1 || !strings.HasPrefix(names[0], Folder) {
		t.Errorf("what is kept is %q", names)
	}
}

// TestOneRevocationListOfASerial: where two admins have written different ones at the same
// moment, what both become is neither.
func TestOneRevocationListOfASerial(t *testing.T) {
	remove := func(fill byte, serials uint64) func(*Registry) error {
		return func(r *Registry) error {
			r.Remove(newNode(t, "gone", fill).ID)
			r.Revocations += serials
			return nil
		}
	}
	store := &registrytest.Objects{}
	update(t, store, remove(1, 1))
	before := store.Snapshot()
	mine := update(t, store, remove(2, 1))
	if err := store.Write(t.Context(), Folder+"other", []byte(encode(t, update(t, before, remove(3, 1))))); err != nil {
		t.Fatal(err)
	}
	if mine.Revocations != 2 {
		t.Errorf("without another it is %d", mine.Revocations)
	}
	if merged, each, err := LoadEach(t.Context(), store, cluster()); err != nil || len(each) != 2 || merged.Revocations != 2 {
		t.Errorf("%+v of %d, %v", merged, len(each), err)
	}
	if r := update(t, store, adding(t, "new-1", 8)); r.Revocations != 3 || len(r.Revoked.Nodes) != 3 {
		t.Errorf("%+v", r)
	}
	if r := update(t, store, adding(t, "new-2", 9)); r.Revocations != 3 {
		t.Errorf("it is numbered again, %d", r.Revocations)
	}
	// Nor does a change have a serial that isn't its own.
	if r := update(t, store, remove(4, 0)); r.Revocations != 4 {
		t.Errorf("it has the serial before, %d", r.Revocations)
	}
	if r := update(t, store, remove(5, 1)); r.Revocations != 5 {
		t.Errorf("it is numbered twice, %d", r.Revocations)
	}
}

// TestTimesAreKept: the moment of a change survives being written.
func TestTimesAreKept(t *testing.T) {
	store := &registrytest.Objects{}
	now := time.Now()
	want := update(t, store, func(r *Registry) error {
		n, err := NewNode("home-1", newNode(t, "home-1", 1).Key, volumeid.ID{}, now)
		if err != nil {
			return err
		}
		n.SetAddress(parse(t, "192.0.2.10"), now)
		return r.Add(n)
	})
	got := load(t, store)
	if !got.Nodes[0].Enrolled.Equal(now) || got.Nodes[0].Address != want.Nodes[0].Address {
		t.Errorf("%+v", got)
	}
}
