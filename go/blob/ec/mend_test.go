package ec

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// spoil leaves a part without a usable shard of a blob, in some way.
var spoil = map[string]func(b *bed, part int, name blob.Name){
	"lost":      func(b *bed, part int, name blob.Name) { b.plant(part, name, nil) },
	"cut short": func(b *bed, part int, name blob.Name) { b.plant(part, name, b.snapshot(part)[name][:40]) },
	"altered": func(b *bed, part int, name blob.Name) {
		shard := b.snapshot(part)[name]
		shard[b.headerSize()] ^= 1
		b.plant(part, name, shard)
	},
	"forged": func(b *bed, part int, name blob.Name) { b.plant(part, name, forged(b.t, b.layout, name, 1, part)) },
	"another blob's": func(b *bed, part int, name blob.Name) {
		b.plant(part, name, forged(b.t, b.layout, blobtest.Name(name.Kind, 99), 1, part))
	},
}

// TestReadsMend: a read sends the shard to the part that it found without.
func TestReadsMend(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for what, spoil := range spoil {
			for _, name := range allNames {
				if name.Kind == blob.KindHeader && what == "another blob's" {
					continue // There is one header.
				}
				if l.total == 2 && what == "forged" {
					continue // Nobody is against the forger.
				}
				b := newBed(t, l)
				b.put(name, content)
				b.flush()
				b.reopen()
				spoil(b, 0, name) // It is among those that are read.
				before := b.snapshot(0)
				got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
				b.settle()
				if err != nil || l.data > 1 && !bytes.Equal(got, content) || !bytes.Equal(before[name], b.snapshot(0)[name]) {
					t.Errorf("%s %s: a read that must not change anything: %q, %v", what, name, got, err)
				}
				flushes := b.at[0].Calls(blobtest.Flush)
				if l.data == 1 && name == chunkName {
					// One part alone says nothing: its reader has to tell.
					b.expectAccepted(name, content)
				} else {
					b.expect(name, content)
				}
				b.settle()
				b.whole(name)
				if b.at[0].Calls(blobtest.Flush) == flushes {
					t.Errorf("%s %s: what was mended was not flushed", what, name)
				}
			}
		}
	})
}

// TestReadsMendStaleParts: a part that missed a write gets its shard.
func TestReadsMendStaleParts(t *testing.T) {
	for _, l := range []layout{{1, 3}, {2, 5}, {4, 6}} {
		for _, name := range changeable {
			b := newBed(t, l)
			b.put(name, []byte("old"))
			b.flush()
			b.at[0].Fail(blobtest.All, nil)
			b.put(name, content)
			b.flush()
			b.heal()
			b.reopen().expect(name, content)
			b.settle()
			b.whole(name)
		}
	}
}

// TestReadsLeaveNewerVersionsAlone: a write that is under way isn't undone by those
// who read what it replaces.
func TestReadsLeaveNewerVersionsAlone(t *testing.T) {
	b := newBed(t, layout{2, 5})
	b.put(manifestName, []byte("old"))
	b.flush()
	newest := shardsOf(t, b.layout, manifestName, 1<<62, []byte("new"))[0]
	b.plant(0, manifestName, newest)
	b.expect(manifestName, []byte("old"))
	b.settle()
	if !bytes.Equal(b.snapshot(0)[manifestName], newest) {
		t.Error("the shard of a newer version was replaced by that of an older one")
	}
	// Nor when it arrives between the read and the mending.
	b.plant(0, manifestName, nil)
	var once bool
	b.at[0].Hook(func(op blobtest.Op, _ blob.Name) {
		if op == blobtest.Get && b.at[0].Calls(blobtest.Get) > 1 && !once {
			once = true
			b.plant(0, manifestName, newest)
		}
	})
	b.reopen().expect(manifestName, []byte("old"))
	b.settle()
	if !bytes.Equal(b.snapshot(0)[manifestName], newest) {
		t.Error("a shard that arrived meanwhile was replaced")
	}
}

func TestReadsDontMendUnreachableParts(t *testing.T) {
	b := newBed(t, layout{2, 3})
	b.put(chunkName, content)
	b.at[0].Fail(blobtest.Get, nil)
	puts := b.at[0].Calls(blobtest.Put)
	b.expect(chunkName, content)
	b.settle()
	if b.at[0].Calls(blobtest.Put) != puts {
		t.Error("a part that could not be read was written to")
	}
	// One that refuses is not asked again and again.
	b.heal()
	b.reopen()
	b.plant(0, chunkName, nil)
	b.at[0].Fail(blobtest.Put, nil)
	for range 5 {
		b.expect(chunkName, content)
		b.settle()
	}
	if n := b.at[0].Calls(blobtest.Put) - puts; n != 1 {
		t.Errorf("a part that refuses shards was sent %d", n)
	}
}

// TestMendingIsWaitedFor by Close, in the background and when there is too much of
// it for that.
func TestMendingIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, layout{2, 3})
		var names []blob.Name
		for n := range mends + 3 {
			names = append(names, blobtest.Name(blob.KindChunk, n))
			b.put(names[n], content)
			b.plant(0, names[n], nil)
		}
		b.at[0].Stall(blobtest.Put)
		for _, name := range names[:mends] {
			b.expect(name, content)
		}
		read := 0
		for _, name := range names[mends:] {
			go func() {
				if got, err := b.Get(context.Background(), name, nil, limit); err != nil || !bytes.Equal(got, content) {
					t.Errorf("Get: %q, %v", got, err)
				}
				read++
			}()
		}
		synctest.Wait()
		if read > 0 {
			t.Errorf("%d reads have left more to be mended than may be", read)
		}
		closed := false
		go func() {
			b.settle()
			closed = true
		}()
		synctest.Wait()
		if closed {
			t.Error("Close returned while shards were sent")
		}
		b.heal()
		synctest.Wait()
		if !closed {
			t.Error("Close doesn't return")
		}
		for _, name := range names {
			b.whole(name)
		}
	})
}

func TestCloseEndsWhatStalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, layout{2, 3})
		b.put(chunkName, content)
		b.plant(0, chunkName, nil)
		b.at[0].Stall(blobtest.Put)
		b.expect(chunkName, content)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.Close(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Close: %v", err)
		}
		if b.snapshot(0)[chunkName] != nil {
			t.Error("the shard was written")
		}
	})
}

// TestContradictorySums: shards whose header was made up by K parts together are
// read as what they say, and not spread.
func TestContradictorySums(t *testing.T) {
	b := newBed(t, layout{2, 3})
	b.put(chunkName, content)
	// The sum of the third shard is another's.
	for part := range 2 {
		shard := b.snapshot(part)[chunkName]
		copy(shard[fixedHeader+2*sumSize:], shard[fixedHeader:][:sumSize])
		b.plant(part, chunkName, shard)
	}
	b.plant(2, chunkName, nil)
	b.at[1].Fail(blobtest.Get, nil)
	if _, err := b.get(chunkName); err == nil {
		t.Error("one shard is enough")
	}
	b.heal()
	b.reopen().expect(chunkName, content)
	health, err := b.Heal(t.Context(), blob.HealOptions{Verify: true})
	b.settle()
	if b.snapshot(2)[chunkName] != nil || err != nil || health.Repaired > 0 || health.Missing != 1 {
		t.Errorf("a shard was made that contradicts its sum: %+v, %v", health, err)
	}
}

var healKinds = []bool{false, true}

// TestHeal: every way of spoiling shards of every blob, at as many parts as can be
// lost, is found and mended.
func TestHeal(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for what, spoil := range spoil {
			for _, verify := range healKinds {
				b := newBed(t, l)
				for _, name := range allNames {
					b.put(name, content)
				}
				b.flush()
				lost := l.total - l.agreement()
				if what == "forged" {
					lost = min(lost, l.agreement()-1) // More are a version.
				}
				for part := range lost {
					for _, name := range allNames {
						if !(name.Kind == blob.KindHeader && what == "another blob's") {
							spoil(b, part, name)
						}
					}
				}
				b.reopen()
				options := blob.HealOptions{Verify: verify}
				before := make([]map[blob.Name][]byte, l.total)
				for part := range before {
					before[part] = b.snapshot(part)
				}
				found, err := b.Inspect(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				b.settle()
				for part := range before {
					for name, data := range b.snapshot(part) {
						if !bytes.Equal(data, before[part][name]) {
							t.Errorf("%s: Inspect changed %s at part %d", what, name, part)
						}
					}
				}
				healed, err := b.Heal(t.Context(), options)
				if err != nil {
					t.Fatal(err)
				}
				if n := found.Missing + found.Stale + found.Corrupt; found.Repaired != 0 || (lost > 0) != (n > 0) ||
					healed.Missing != found.Missing || healed.Stale != found.Stale || healed.Corrupt != found.Corrupt || healed.Repaired != n {
					t.Errorf("%s (verify: %v): found %+v, healed %+v", what, verify, found, healed)
				}
				for part, p := range healed.Parts {
					if n := p.Missing + p.Stale + p.Corrupt; p.Err != nil || p.Repaired != n || (n > 0) != (part < lost) || p.Part != b.parts[part].String() {
						t.Errorf("%s: part %d: %+v", what, part, p)
					}
				}
				for _, name := range allNames {
					// Of the same length and not read: it is as good as the others.
					if name == chunkName && !verify && slices.Contains([]string{"altered", "forged", "another blob's"}, what) {
						continue
					}
					b.whole(name)
				}
			}
		}
	})
}

// TestHealCutShort ends Heal at every change that it makes.
func TestHealCutShort(t *testing.T) {
	for _, l := range []layout{{2, 3}, {4, 6}} {
		for cut := 0; ; cut++ {
			b := newBed(t, l)
			for _, name := range allNames {
				b.put(name, []byte("old"))
			}
			b.flush()
			b.at[0].Fail(blobtest.Put, nil)
			for _, name := range changeable {
				_ = b.Put(t.Context(), name, content) // too few parts for some of the layouts
			}
			b.heal()
			b.restore(1, nil)
			done := 0
			for _, part := range b.at {
				part.Hook(func(op blobtest.Op, _ blob.Name) {
					if op == blobtest.Put {
						if done++; done > cut {
							for _, part := range b.at {
								part.Fail(blobtest.Writes, nil)
							}
						}
					}
				})
			}
			_, _ = b.Heal(t.Context(), blob.HealOptions{})
			for _, part := range b.at {
				part.Hook(nil)
			}
			b.heal()
			b.reopen()
			for _, name := range allNames {
				if got, err := b.get(name); err != nil || !bytes.Equal(got, content) && string(got) != "old" {
					t.Errorf("%v, cut after %d changes: %s is %q, %v", l, cut, name, got, err)
				}
			}
			b.settle()
			if _, err := b.Heal(t.Context(), blob.HealOptions{}); err != nil {
				t.Error(err)
			}
			if health, err := b.Inspect(t.Context(), blob.HealOptions{Verify: true}); err != nil || health.Missing+health.Stale+health.Corrupt > 0 {
				t.Errorf("%v, cut after %d changes and healed again: %+v, %v", l, cut, health, err)
			}
			if done <= cut {
				break
			}
		}
	}
}

// TestHealNamesPartsThatFail and heals the rest.
func TestHealNamesPartsThatFail(t *testing.T) {
	b := newBed(t, layout{2, 4})
	for _, name := range allNames {
		b.put(name, content)
	}
	b.restore(0, nil)
	b.at[1].Fail(blobtest.All, nil)
	health, err := b.Heal(t.Context(), blob.HealOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(health.Parts[1].Err, blobtest.ErrFault) || health.Parts[0].Repaired != len(allNames) {
		t.Errorf("with a part that is down: %+v", health)
	}
	for _, name := range allNames {
		if b.snapshot(0)[name] == nil {
			t.Errorf("%s is missing at a part that works", name)
		}
	}
	b.heal()
	b.restore(0, nil)
	b.at[0].Fail(blobtest.Put, blobtest.ErrFull)
	health, err = b.Heal(t.Context(), blob.HealOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(health.Parts[0].Err, blobtest.ErrFull) || health.Repaired != 0 || health.Missing != len(allNames) {
		t.Errorf("with a part that is full: %+v", health)
	}
}

func TestHealTellsProgress(t *testing.T) {
	b := newBed(t, layout{2, 3})
	b.put(chunkName, content)
	b.put(manifestName, content)
	var expected, done int64
	options := blob.HealOptions{Verify: true, Expect: func(n int64) { expected += n }, Done: func(n int64) { done += n }}
	if _, err := b.Inspect(t.Context(), options); err != nil {
		t.Fatal(err)
	}
	var want int64
	for part := range b.at {
		want += int64(len(b.snapshot(part)[chunkName]))
	}
	if expected != want || done != want {
		t.Errorf("%d of %d bytes were read, want %d", done, expected, want)
	}
}
