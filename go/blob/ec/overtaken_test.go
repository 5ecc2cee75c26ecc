package ec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// overtake has another program do something at the k-th call that the set makes to its
// parts, and the set's own program die at the m-th, unless that is 0. It returns the
// number of calls.
func (b *bed) overtake(k, m int, other, own func()) int {
	var calls atomic.Int64
	for _, part := range b.at {
		part.Hook(func(blobtest.Op, blob.Name) {
			n := int(calls.Add(1))
			if n == k {
				other()
			}
			if m > 0 && n >= m {
				for _, part := range b.at {
					part.Fail(blobtest.All, nil)
				}
			}
		})
	}
	own()
	for _, part := range b.at {
		part.Hook(nil)
	}
	b.heal()
	return int(calls.Load())
}

// another returns the set as another program has it, whose clock differs.
func (b *bed) another(ahead time.Duration) *bed {
	o := &bed{t: b.t, clock: b.clock.Add(ahead), memory: b.memory}
	for _, memory := range b.memory {
		o.at = append(o.at, blobtest.NewFaulty(memory))
	}
	o.Location = o.over(b.layout)
	return o
}

// survives fails unless one of these versions is read, whichever part is lost.
func (b *bed) survives(name blob.Name, what string, versions ...string) {
	b.t.Helper()
	for lost := -1; lost < b.total; lost++ {
		var held map[blob.Name][]byte
		if lost >= 0 {
			held = b.snapshot(lost)
			b.restore(lost, nil)
		}
		got, err := b.over(b.layout).Get(blob.ReadOnly(b.t.Context()), name, nil, limit)
		fits := false
		for _, version := range versions {
			fits = fits || bytes.Equal(got, []byte(version))
		}
		if err != nil || !fits {
			b.t.Errorf("%v, %s, part %d lost: Get(%s) = %.40q, %v; want one of %q", b.layout, what, lost, name, got, err, versions)
		}
		if lost >= 0 {
			b.restore(lost, held)
		}
	}
}

// overtaking is what a program is about when another one overtakes it.
type overtaking struct {
	name string
	// before is the blob that there is, if any.
	before string
	// mine is what the program stores.
	mine string
	// damage is done to the blob's parts, if it isn't nil.
	damage func(b *bed)
	own    func(ctx context.Context, b *bed) error
	// other is what the other program does; it puts "theirs" unless this is set.
	other func(ctx context.Context, b *bed) error
	// wins is what is read in the end when nobody died, if that is certain, and
	// survives what is when the first program died, if that is.
	wins, survives string
}

func overtakings() []overtaking {
	replace := func(ctx context.Context, b *bed) error {
		if err := b.Put(ctx, manifestName, []byte("mine")); err != nil {
			return err
		}
		return b.Flush(ctx)
	}
	loss := func(b *bed) { b.plant(0, manifestName, nil) }
	return []overtaking{
		{name: "creating", before: "", mine: "mine", damage: nil, own: replace},
		{name: "replacing", before: "first", mine: "mine", damage: nil, own: replace},
		{name: "replacing what a part has lost", before: "first", mine: "mine", damage: loss, own: replace},
		{name: "storing again", before: "first", mine: "first", damage: loss, own: func(ctx context.Context, b *bed) error {
			if err := b.PutMissing(ctx, manifestName, []byte("first")); err != nil {
				return err
			}
			return b.Flush(ctx)
		}},
		{name: "healing", before: "first", mine: "", damage: loss, own: func(ctx context.Context, b *bed) error {
			_, err := b.Heal(ctx, blob.HealOptions{Verify: true})
			return err
		}},
		{name: "reading", before: "first", mine: "", damage: loss, own: func(ctx context.Context, b *bed) error {
			_, err := b.Get(ctx, manifestName, nil, limit)
			return errors.Join(err, b.Close(ctx))
		}},
		{name: "superseded by then", before: "first", own: superseding("mine", "theirs"), other: superseding("theirs", ""), wins: "theirs", survives: "theirs"},
		{name: "superseding", before: "first", mine: "mine", own: superseding("mine", ""), other: superseding("theirs", "mine"), wins: "mine"},
		{name: "creating what is older", own: superseding("mine", "theirs"), other: superseding("theirs", ""), wins: "theirs", survives: "theirs"},
		{name: "creating what is newer", mine: "mine", own: superseding("mine", ""), other: superseding("theirs", "mine"), wins: "mine"},
	}
}

// superseding returns a function that stores a blob unless a newer one is there.
func superseding(data, newer string) func(ctx context.Context, b *bed) error {
	return func(ctx context.Context, b *bed) error {
		err := b.Supersede(ctx, manifestName, limit, []byte(data), func(there []byte) bool { return string(there) == newer })
		if err != nil {
			return err
		}
		return b.Flush(ctx)
	}
}

// TestOvertaken: while one program stores a blob, mends or reads it, another replaces it
// and has that acknowledged, at any moment; the first dies at any later one, or doesn't.
// What was acknowledged stays, or something newer.
func TestOvertaken(t *testing.T) {
	for _, l := range []layout{{1, 2}, {2, 3}, {2, 4}, {4, 6}} {
		for _, o := range overtakings() {
			for _, ahead := range []time.Duration{-time.Hour, time.Hour} {
				for k, calls := 1, 1; k <= calls; k++ {
					calls = o.at(t, l, ahead, k, 0)
					for m := k + 1; m <= calls; m++ {
						o.at(t, l, ahead, k, m)
					}
				}
			}
		}
	}
}

// at has another program, whose clock differs, overtake at the k-th call, and its own die
// at the m-th, unless that is 0. It returns how many calls it came to.
func (o overtaking) at(t *testing.T, l layout, ahead time.Duration, k, m int) int {
	b := newBed(t, l)
	if o.before != "" {
		b.put(manifestName, []byte(o.before))
		b.flush()
	}
	if o.damage != nil {
		o.damage(b)
	}
	other, acknowledged := b.another(ahead), false
	calls := b.overtake(k, m, func() {
		if o.other != nil {
			acknowledged = o.other(t.Context(), other) == nil
			return
		}
		err := other.Put(t.Context(), manifestName, []byte("theirs"))
		acknowledged = err == nil && other.Flush(t.Context()) == nil
	}, func() { _ = o.own(t.Context(), b) })
	if k <= calls && !acknowledged {
		t.Errorf("%v, %s, overtaken at call %d: the other isn't acknowledged", l, o.name, k)
	}
	if !acknowledged {
		return calls
	}
	versions := []string{"theirs", o.mine}
	switch {
	case m == 0 && o.wins != "":
		versions = []string{o.wins}
	case o.survives != "":
		versions = []string{o.survives}
	}
	what := fmt.Sprintf("%s, overtaken at call %d by a clock %v ahead, dead at %d", o.name, k, ahead, m)
	b.survives(manifestName, what, versions...)
	return calls
}
