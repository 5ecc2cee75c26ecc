package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"powercloud.unidatum.com/go/cluster/registry/registrytest"
)

// TestTwoAtOnce has two change the registry, in every order of their calls.
func TestTwoAtOnce(t *testing.T) {
	for _, first := range []string{"nothing", "an object", "the old object"} {
		runs := registrytest.Every(func(choose func(int) int) {
			store := &registrytest.Objects{}
			switch first {
			case "an object":
				update(t, store, adding(t, "first", 9))
			case "the old object":
				_ = store.Write(t.Context(), OldName, []byte(encode(t, update(t, &registrytest.Objects{}, adding(t, "first", 9)))))
			}
			registrytest.Interleave(store, choose,
				func(s registrytest.Store) { update(t, s, adding(t, "home-1", 1)) },
				func(s registrytest.Store) { update(t, s, adding(t, "home-2", 2)) })
			want := []string{"home-1", "home-2"}
			if first != "nothing" {
				want = []string{"first", "home-1", "home-2"}
			}
			wantNodes(t, load(t, store), want...)
			if n := len(store.Names()); n < 1 || n > 2 {
				t.Errorf("%d objects are left", n)
			}
			update(t, store, adding(t, "last", 3))
			wantNodes(t, load(t, store), append(want, "last")...)
			if n := len(store.Names()); n != 1 {
				t.Errorf("in the end there are %d objects", n)
			}
			if t.Failed() {
				t.FailNow()
			}
		})
		if runs < 20 { // 6! / 3!^2
			t.Errorf("with %s at first there are %d orders", first, runs)
		}
	}
}

// TestThreeAtOnce is the same with three, on an empty store.
func TestThreeAtOnce(t *testing.T) {
	runs := registrytest.Every(func(choose func(int) int) {
		store := &registrytest.Objects{}
		writer := func(name string, fill byte) func(registrytest.Store) {
			return func(s registrytest.Store) { update(t, s, adding(t, name, fill)) }
		}
		registrytest.Interleave(store, choose, writer("home-1", 1), writer("home-2", 2), writer("home-3", 3))
		wantNodes(t, load(t, store), "home-1", "home-2", "home-3")
		if t.Failed() {
			t.FailNow()
		}
	})
	if runs < 1680 { // 9! / 3!^3
		t.Errorf("there are %d orders", runs)
	}
}

// TestReadingWhileOthersWrite: what was there before is never missing.
func TestReadingWhileOthersWrite(t *testing.T) {
	for _, old := range []bool{false, true} {
		registrytest.Every(func(choose func(int) int) {
			store := &registrytest.Objects{}
			first := update(t, store, adding(t, "first", 9))
			if old {
				store = &registrytest.Objects{}
				_ = store.Write(t.Context(), OldName, []byte(encode(t, first)))
			}
			registrytest.Interleave(store, choose,
				func(s registrytest.Store) {
					if _, err := load(t, s).Find("first"); err != nil {
						t.Error(err)
					}
				},
				func(s registrytest.Store) {
					update(t, s, adding(t, "home-1", 1))
					update(t, s, adding(t, "home-2", 2))
				})
			if t.Failed() {
				t.FailNow()
			}
		})
	}
}

// TestCutOff has a change end at every call, in every way that a call can: what was there
// stays, and done again, the change is there, in one object.
func TestCutOff(t *testing.T) {
	for _, old := range []bool{false, true} {
		calls := cutOff(t, old, -1, registrytest.Done)
		if calls < 4 {
			t.Errorf("a change makes %d calls", calls)
		}
		for at := range calls {
			for _, outcome := range []registrytest.Outcome{registrytest.Undone, registrytest.Unanswered, registrytest.Torn} {
				cutOff(t, old, at, outcome)
			}
		}
	}
}

// cutOff ends a change at a call, and returns how many it has made.
func cutOff(t *testing.T, old bool, cut int, outcome registrytest.Outcome) (calls int) {
	t.Helper()
	store := &registrytest.Objects{}
	if old {
		_ = store.Write(t.Context(), OldName, []byte(encode(t, update(t, &registrytest.Objects{}, adding(t, "first", 9)))))
	} else {
		update(t, store, adding(t, "first", 9))
	}
	store.Hook = func(registrytest.Op, string) registrytest.Outcome {
		calls++
		switch {
		case cut < 0 || calls <= cut:
			return registrytest.Done
		case calls == cut+1:
			return outcome
		}
		return registrytest.Undone // It has ended.
	}
	_, err := Update(t.Context(), store, cluster(), adding(t, "home-1", 1))
	store.Hook = nil
	if _, firstErr := load(t, store).Find("first"); firstErr != nil {
		t.Errorf("cut off at call %d: %v", cut, firstErr)
	}
	if _, homeErr := load(t, store).Find("home-1"); err == nil && homeErr != nil {
		t.Errorf("cut off at call %d: it was acknowledged: %v", cut, homeErr)
	}
	update(t, store, func(r *Registry) error {
		if _, err := r.Find("home-1"); err == nil {
			return nil
		}
		return r.Add(newNode(t, "home-1", 1))
	})
	wantNodes(t, load(t, store), "first", "home-1")
	if n := len(store.Names()); n != 1 {
		t.Errorf("cut off at call %d: %d objects", cut, n)
	}
	return calls
}

// TestWritingThatFailed: what it has left may be gone again, until it was written anew.
func TestWritingThatFailed(t *testing.T) {
	for _, before := range []int{0, 1, 2} {
		store := &registrytest.Objects{}
		for i := range before {
			update(t, store, adding(t, fmt.Sprintf("first-%d", i), byte(8+i)))
		}
		store.Hook = func(op registrytest.Op, _ string) registrytest.Outcome {
			if op == registrytest.Write {
				return registrytest.Torn
			}
			return registrytest.Done
		}
		if _, err := Update(t.Context(), store, cluster(), adding(t, "home-1", 1)); !errors.Is(err, registrytest.ErrCut) {
			t.Error(err)
		}
		store.Hook = nil
		if _, err := Keep(t.Context(), store, load(t, store)); err != nil {
			t.Error(err)
		}
		store.Shows = func(string, bool) bool { return false }
		if n := len(load(t, store).Nodes); n != before+1 {
			t.Errorf("after %d others: %d nodes", before, n)
		}
	}
}

// TestRemovedObjectsThatComeBack: a location that shows every object that there ever was
// changes nothing; least of all does it bring back what was removed or revoked.
func TestRemovedObjectsThatComeBack(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		store := &registrytest.Objects{}
		changes := rapid.IntRange(1, 8).Draw(draw, "changes")
		for i := range changes {
			update(draw, store, anyChange(draw, i+1))
		}
		want := load(draw, store)
		shown := map[string]bool{}
		for _, name := range store.Names() {
			shown[name] = true
		}
		store.Shows = func(name string, _ bool) bool {
			if _, drawn := shown[name]; !drawn {
				shown[name] = rapid.Bool().Draw(draw, "shown")
			}
			return shown[name]
		}
		if got := load(draw, store); encode(draw, got) != encode(draw, want) {
			draw.Errorf("%s instead of %s", encode(draw, got), encode(draw, want))
		}
		kept, err := Keep(context.Background(), store, want)
		if err != nil {
			draw.Fatal(err)
		}
		if kept.Serial = want.Serial; encode(draw, kept) != encode(draw, want) {
			draw.Errorf("kept is %s instead of %s", encode(draw, kept), encode(draw, want))
		}
	})
}

// anyChange draws a change of what is in a registry.
func anyChange(draw *rapid.T, second int) func(*Registry) error {
	fill := byte(rapid.IntRange(1, 4).Draw(draw, "node"))
	what := rapid.SampledFrom([]string{"add", "remove", "address", "clear", "confirm", "admins", "number"}).Draw(draw, "change")
	return func(r *Registry) error {
		n := newNode(draw, fmt.Sprintf("home-%d", fill), fill)
		there, err := r.Find(n.ID.String())
		switch {
		case what == "admins":
			r.Revoked = r.Revoked.WithAdmins(at(second))
			r.Revocations++
		case what == "number":
			r.Membership++
		case what == "remove":
			r.Remove(n.ID)
			r.Revocations++
		case err != nil && !r.Revoked.HasNode(n.ID):
			return r.Add(n)
		case err != nil:
		case what == "address":
			// The clock goes backwards, too.
			there.SetAddress(parse(draw, fmt.Sprintf("192.0.2.%d", second)), at(20-second))
		case what == "clear":
			there.Endpoint.Set(parse(draw, "192.0.2.99"), at(second))
			there.PeerAPI.Set(there.Address.Value, at(second))
		case what == "confirm":
			there.Confirmed.Set(!there.Confirmed.Value, at(second))
		}
		return nil
	}
}

// TestManyAtOnce has up to four change the registry at once, again and again, while calls
// fail, writers end, and locations show what was removed: what was acknowledged before
// something is loaded is in that, and stays.
func TestManyAtOnce(t *testing.T) {
	rapid.Check(t, func(draw *rapid.T) {
		faulty := rapid.Bool().Draw(draw, "faulty")
		writers := rapid.IntRange(2, 4).Draw(draw, "writers")
		// Not drawn by the writers: drawing may end a goroutine.
		drawn := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(draw, "choices")
		choose := func(n int) int {
			if len(drawn) == 0 {
				return 0
			}
			chosen := int(drawn[0]) % n
			drawn = drawn[1:]
			return chosen
		}
		store := &registrytest.Objects{}
		store.Hook = func(registrytest.Op, string) registrytest.Outcome {
			if faulty && choose(16) == 15 {
				return registrytest.Outcome(1 + choose(3))
			}
			return registrytest.Done
		}
		store.Shows = func(string, bool) bool { return choose(2) == 1 }
		var acknowledged []string
		check := func(r *Registry, names []string) {
			for _, name := range names {
				if _, err := r.Find(name); err != nil {
					draw.Errorf("acknowledged, and not there: %v", err)
				}
			}
		}
		var group []func(registrytest.Store)
		for number := range writers {
			group = append(group, func(s registrytest.Store) {
				for i := range 2 {
					before := slices.Clone(acknowledged)
					name := fmt.Sprintf("home-%d-%d", number, i)
					kept, err := Update(context.Background(), s, cluster(), adding(t, name, byte(16*number+i+1)))
					if err == nil {
						acknowledged = append(acknowledged, name)
						check(kept, append(before, name))
					}
				}
			})
		}
		registrytest.Interleave(store, choose, group...)
		store.Hook, store.Shows = nil, func(string, bool) bool { return false }
		check(load(draw, store), acknowledged)
	})
}
