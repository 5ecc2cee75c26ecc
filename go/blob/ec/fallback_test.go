package ec

import (
	"testing"
	"testing/synctest"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestFailedReplacementsKeepWhatWasAcknowledged: a write that failed has left a version
// at as many parts as it takes to read it, and no more. The next one, cut short, must
// not make that all there is: a part may be lost as well.
func TestFailedReplacementsKeepWhatWasAcknowledged(t *testing.T) {
	for _, l := range []layout{{2, 3}, {3, 4}} {
		for _, name := range changeable {
			for lost := 1; lost < l.total; lost++ {
				b := newBed(t, l)
				b.put(name, []byte("acknowledged"))
				b.flush()
				b.at[0].Fail(blobtest.Put, nil)
				if err := b.Put(t.Context(), name, []byte("second")); err == nil {
					t.Fatal("a write to too few parts succeeds")
				}
				b.heal()
				b.reopen()
				for _, part := range b.at[1:] {
					part.Fail(blobtest.Put, nil)
				}
				if err := b.Put(t.Context(), name, []byte("third")); err == nil {
					t.Fatal("a write to one part succeeds")
				}
				b.heal()
				b.restore(lost, nil)
				b.reopen()
				if _, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit); err != nil {
					t.Errorf("%v, part %d lost: Get(%s): %v", l, lost, name, err)
				}
			}
		}
	}
}

// TestReadAsksNoPartInVain: where all is well, a read asks as many parts as it needs.
func TestReadAsksNoPartInVain(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for _, name := range allNames {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t, l)
				b.put(name, content)
				b.flush()
				calls := func() (n int) {
					for _, part := range b.at {
						n += part.Calls(blobtest.Get)
					}
					return n
				}
				before := calls()
				b.expect(name, content)
				synctest.Wait()
				p := b.planFor(name.Kind)
				if got, want := calls()-before, max(p.agree, p.answers); got != want {
					t.Errorf("Get(%s) asks %d parts, want %d", name, got, want)
				}
			})
		}
	})
}

// TestOlderVersionsStayWhileTooFewPartsAreSure: whoever finds a version that another writer
// left in front of an older one drops the older one only once enough parts have made sure of it.
func TestOlderVersionsStayWhileTooFewPartsAreSure(t *testing.T) {
	b := newBed(t, layout{2, 4})
	b.put(manifestName, []byte("first"))
	b.flush()
	b.put(manifestName, []byte("second")) // Its writer dies before he flushes.
	b.reopen()
	for _, part := range b.at[:2] {
		part.Fail(blobtest.Stat, nil) // A flush covers what others wrote only after it.
	}
	heal := func(want int) {
		t.Helper()
		if _, err := b.Heal(t.Context(), blob.HealOptions{}); err != nil {
			t.Fatal(err)
		}
		for part := range b.at {
			if n := len(b.held(part, manifestName)); n != want {
				t.Errorf("part %d has %d versions, want %d", part, n, want)
			}
		}
	}
	heal(2)
	b.heal()
	heal(1)
}
