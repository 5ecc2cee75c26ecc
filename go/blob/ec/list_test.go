package ec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestListWithoutSomeParts: parts that can't be listed matter only where they may
// have something that the others don't tell.
func TestListWithoutSomeParts(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		for _, name := range allNames {
			b.put(name, content)
		}
		b.forEachSubset(func(failing []int) {
			b.heal()
			for _, part := range failing {
				b.at[part].Fail(blobtest.All, nil)
			}
			b.reopen()
			for _, name := range allNames {
				found, err := b.list(name.Kind)
				enough := l.total-len(failing) >= l.data && len(failing) < l.quorum()
				if name.Kind == blob.KindHeader {
					enough = l.total-len(failing) >= l.data // one that is there is there
				}
				if (err == nil) != enough || enough && len(found) != 1 || !enough && !errors.Is(err, blobtest.ErrFault) {
					t.Errorf("without %v: %v, %v", failing, found, err)
				}
				if info := found[name]; enough && name.Kind == blob.KindChunk && info.Size != int64(len(content)) {
					t.Errorf("without %v, the chunk has %d bytes", failing, info.Size)
				}
			}
		})
	})
}

// TestListIsUncertain: a blob of which a part that can't be listed may have a shard
// makes a listing fail, rather than be missing from it.
func TestListIsUncertain(t *testing.T) {
	b := newBed(t, layout{4, 6})
	for _, name := range allNames {
		b.put(name, content)
		b.plant(5, name, nil)
		b.plant(4, name, nil)
	}
	b.at[0].Fail(blobtest.All, nil)
	for _, name := range allNames {
		// Three shards, and perhaps one more: no write was told that it's stored.
		found, err := b.list(name.Kind)
		if err != nil && name.Kind != blob.KindHeader || len(found) != 0 && name.Kind != blob.KindChunk {
			t.Errorf("with 3 shards and a part that is down: %v, %v", found, err)
		}
	}
	b.at[1].Fail(blobtest.All, nil)
	for _, name := range allNames {
		b.plant(4, name, shardsOf(t, b.layout, name, 1, content)[4])
		// Three shards, and perhaps two more.
		if found, err := b.list(name.Kind); !errors.Is(err, blobtest.ErrFault) {
			t.Errorf("with 3 shards and two parts that are down: %v, %v", found, err)
		}
	}
}

// TestTooFewShards: what an interrupted write left isn't a blob, but a chunk's is
// shown to those who know whether it is in use.
func TestTooFewShards(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		if l.data == 1 {
			t.Skip("one shard is a blob")
		}
		b := newBed(t, l)
		for _, name := range allNames {
			b.put(name, content)
			for part := l.data - 1; part < l.total; part++ {
				b.plant(part, name, nil)
			}
		}
		for _, name := range allNames {
			found, err := b.list(name.Kind)
			if err != nil {
				t.Errorf("List(%s): %v", name.Kind, err)
			}
			_, statErr := b.Stat(t.Context(), name)
			_, getErr := b.get(name)
			switch kept := name.Kind == blob.KindHeader || name.Kind == blob.KindChunk; {
			case kept && (found[name].Size != blob.SizeUnknown || found[name].Mark == "" || !errors.Is(statErr, blob.ErrDamaged) || !errors.Is(getErr, blob.ErrDamaged)):
				t.Errorf("%s is listed as %+v; Stat: %v, Get: %v", name, found[name], statErr, getErr)
			case !kept && (len(found) != 0 || !errors.Is(statErr, blob.ErrNotFound) || !errors.Is(getErr, blob.ErrNotFound)):
				t.Errorf("%s is listed as %+v; Stat: %v, Get: %v", name, found[name], statErr, getErr)
			}
		}
	})
}

// TestListLies: lengths that parts make up change nothing as long as K tell the
// truth.
func TestListLies(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		if l.total < 3 {
			t.Skip("one of two has nobody against it")
		}
		b := newBed(t, l)
		b.put(chunkName, content)
		for liar := range l.total {
			for longer := range 40 {
				held := b.snapshot(liar)
				b.plant(liar, chunkName, append(slices.Clone(held[chunkName]), make([]byte, longer+1)...))
				found, err := b.list(blob.KindChunk)
				info, statErr := b.Stat(t.Context(), chunkName)
				if err != nil || statErr != nil || found[chunkName].Size != int64(len(content)) || info != found[chunkName] {
					t.Errorf("part %d lies by %d bytes: %v, %v; %v, %v", liar, longer+1, found, err, info, statErr)
				}
				b.restore(liar, held)
			}
		}
	})
}

// TestMark differs after every write that a reader could see, whichever parts took
// it.
func TestMark(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		newBed(t, l).forEachSubset(func(failing []int) {
			if l.total-len(failing) < l.data {
				return
			}
			for _, name := range allNames {
				b := newBed(t, l)
				b.put(name, []byte("old"))
				before, err := b.Stat(t.Context(), name)
				if err != nil {
					t.Fatal(err)
				}
				for _, part := range failing {
					b.at[part].Fail(blobtest.Put, nil)
				}
				_ = b.Put(t.Context(), name, []byte("new")) // which takes effect even if it fails
				b.heal()
				after, err := b.Stat(t.Context(), name)
				if err != nil || after.Mark == before.Mark {
					t.Errorf("written but for %v, %s has the mark %s after %s, %v", failing, name, after.Mark, before.Mark, err)
				}
				if found, err := b.list(name.Kind); err != nil || found[name].Mark != after.Mark {
					t.Errorf("listed as %v, %v", found[name], err)
				}
			}
		})
	})
}

// untidy is a part that is a Temporaries.
type untidy struct {
	blob.Location
	left map[string]int64
	err  error
}

func (u *untidy) ListTemporary(_ context.Context, fn func(blob.Temporary) error) error {
	for _, name := range slices.Sorted(maps.Keys(u.left)) {
		if err := fn(blob.Temporary{Name: name, Size: u.left[name], Mark: name}); err != nil {
			return err
		}
	}
	return u.err
}

func (u *untidy) RemoveTemporary(_ context.Context, name string) error {
	delete(u.left, name)
	return u.err
}

func TestTemporariesOfParts(t *testing.T) {
	first, last := &untidy{Location: blobtest.NewMemory("first"), left: map[string]int64{"a": 1, "b:c": 2}},
		&untidy{Location: blobtest.NewMemory("last"), left: map[string]int64{"a": 3}}
	location, err := New("ec", 1, []blob.Location{first, blobtest.NewMemory("tidy"), last})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{Location: location, t: t}
	found := b.leftovers()
	if len(found) != 3 || found["0:a"].Size != 1 || found["0:b:c"].Size != 2 || found["2:a"].Size != 3 || found["2:a"].Mark == "" {
		t.Errorf("leftovers: %v", found)
	}
	want := errors.New("enough")
	if err := b.ListTemporary(t.Context(), func(blob.Temporary) error { return want }); err != want {
		t.Errorf("ListTemporary: %v", err)
	}
	for _, name := range []string{"0:b:c", "2:a", "2:a", "1:a"} {
		if err := b.RemoveTemporary(t.Context(), name); err != nil {
			t.Errorf("RemoveTemporary(%s): %v", name, err)
		}
	}
	if found := b.leftovers(); len(found) != 1 || first.left["a"] != 1 {
		t.Errorf("leftovers after removing: %v", found)
	}
	for _, name := range []string{"3:a", "-1:a", "x:a", "a", ""} {
		if err := b.RemoveTemporary(t.Context(), name); err == nil {
			t.Errorf("RemoveTemporary(%q) succeeds", name)
		}
	}
	last.err = blobtest.ErrFault
	if err := b.ListTemporary(t.Context(), func(blob.Temporary) error { return nil }); !errors.Is(err, blobtest.ErrFault) || !strings.HasPrefix(err.Error(), "last: ") {
		t.Errorf("ListTemporary: %v", err)
	}
	if err := b.RemoveTemporary(t.Context(), "2:a"); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("RemoveTemporary: %v", err)
	}
}

// TestOrphans: the shards of versions that can't be put together are leftovers, and
// nothing else is.
func TestOrphans(t *testing.T) {
	for _, l := range []layout{{2, 3}, {3, 4}, {4, 6}} {
		for _, name := range changeable[1:] {
			for took := range l.total + 1 {
				for _, earlier := range []bool{false, true} {
					b := newBed(t, l)
					if earlier {
						b.put(name, []byte("what was there"))
						b.flush()
					}
					for part := range l.total {
						if part >= took {
							b.at[part].Fail(blobtest.Put, nil)
						}
					}
					_ = b.Put(t.Context(), name, content) // cut short, perhaps
					b.heal()
					b.reopen()
					before, beforeErr := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
					found := b.leftovers()
					orphaned := took > 0 && took < l.data
					left, listed := found[name.String()]
					if len(found) > 1 || listed != orphaned || orphaned && (left.Size == 0 || left.Mark == "") {
						t.Errorf("%v, at %d parts, with an earlier version: %v: leftovers %v", l, took, earlier, found)
					}
					if err := b.RemoveTemporary(t.Context(), name.String()); err != nil {
						t.Errorf("RemoveTemporary: %v", err)
					}
					if found := b.leftovers(); len(found) > 0 {
						t.Errorf("leftovers after removing: %v", found)
					}
					after, afterErr := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
					if string(after) != string(before) || fmt.Sprint(afterErr) != fmt.Sprint(beforeErr) {
						t.Errorf("removing leftovers made %q, %v of %q, %v", after, afterErr, before, beforeErr)
					}
				}
			}
		}
	}
}

// TestOrphansMayBeMore: a shard that is alone isn't removed while a part can't be
// read.
func TestOrphansMayBeMore(t *testing.T) {
	b := newBed(t, layout{2, 3})
	b.put(manifestName, content)
	b.plant(0, manifestName, nil)
	b.at[1].Fail(blobtest.Reads, nil)
	if err := b.ListTemporary(t.Context(), func(blob.Temporary) error { return nil }); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("ListTemporary: %v", err)
	}
	if err := b.RemoveTemporary(t.Context(), manifestName.String()); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("RemoveTemporary: %v", err)
	}
	b.heal()
	b.expect(manifestName, content)
}
