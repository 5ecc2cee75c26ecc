package ec

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

var content = []byte("what is stored, in a few shards")

// TestEverySubsetOfPartsUnreachable: K parts are enough to read, and with fewer it
// isn't known what there is.
func TestEverySubsetOfPartsUnreachable(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		for _, name := range allNames {
			b.put(name, content)
		}
		b.flush()
		b.forEachSubset(func(lost []int) {
			b.heal()
			for _, part := range lost {
				b.at[part].Fail(blobtest.All, nil)
			}
			b.reopen()
			for _, name := range allNames {
				got, err := b.get(name)
				info, statErr := b.Stat(t.Context(), name)
				if len(lost) <= l.total-l.data {
					if err != nil || !bytes.Equal(got, content) || statErr != nil || info.Size != int64(len(content)) {
						t.Errorf("without %v, %s is %q, %v, and its size %d, %v", lost, name, got, err, info.Size, statErr)
					}
					continue
				}
				for _, err := range []error{err, statErr} {
					if !errors.Is(err, blobtest.ErrFault) || errors.Is(err, blob.ErrNotFound) || blob.Unusable(err) {
						t.Errorf("without %v, reading %s: %v", lost, name, err)
					}
				}
			}
			if err := b.Probe(t.Context()); (err == nil) != (l.total-len(lost) >= l.data) {
				t.Errorf("without %v, Probe: %v", lost, err)
			}
			if err := b.ProbeAll(t.Context()); (err == nil) != (len(lost) == 0) {
				t.Errorf("without %v, ProbeAll: %v", lost, err)
			}
		})
	})
}

// TestEverySubsetOfPartsEmpty: parts that lost everything say so.
func TestEverySubsetOfPartsEmpty(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		for _, name := range allNames {
			b.put(name, content)
		}
		full := make([]map[blob.Name][]byte, l.total)
		for i := range full {
			full[i] = b.snapshot(i)
		}
		b.forEachSubset(func(lost []int) {
			for i := range full {
				b.restore(i, full[i])
			}
			for _, part := range lost {
				b.restore(part, nil)
			}
			b.reopen()
			for _, name := range allNames {
				got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
				left := l.total - len(lost)
				switch {
				case left >= l.data:
					if err != nil || !bytes.Equal(got, content) {
						t.Errorf("without %v, %s is %q, %v", lost, name, got, err)
					}
				case left == 0:
					if !errors.Is(err, blob.ErrNotFound) {
						t.Errorf("reading %s from nothing: %v", name, err)
					}
				case name.Kind == blob.KindHeader || name.Kind == blob.KindChunk:
					if !errors.Is(err, blob.ErrDamaged) || errors.Is(err, blob.ErrNotFound) {
						t.Errorf("reading %s of which %d shards are left: %v", name, left, err)
					}
				case err == nil:
					t.Errorf("without %v, %s is %q", lost, name, got)
				}
			}
		})
	})
}

// TestEverySubsetOfPartsStale: n-K parts that come back with an older version don't
// matter.
func TestEverySubsetOfPartsStale(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		var old, current []map[blob.Name][]byte
		for _, data := range []string{"older content", "current content"} {
			for _, name := range changeable {
				b.put(name, []byte(data))
			}
			b.flush()
			old, current = current, nil
			for i := range l.total {
				current = append(current, b.snapshot(i))
			}
		}
		b.forEachSubset(func(stale []int) {
			for i := range current {
				held := current[i]
				if slices.Contains(stale, i) {
					held = old[i]
				}
				b.restore(i, held)
			}
			b.reopen()
			for _, name := range changeable {
				got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
				switch enough := l.total-len(stale) >= l.agreement(); {
				case enough && (err != nil || string(got) != "current content"):
					t.Errorf("with %v stale, %s is %q, %v", stale, name, got, err)
				case err == nil && string(got) != "current content" && string(got) != "older content":
					t.Errorf("with %v stale, %s is %q", stale, name, got)
				}
			}
		})
	})
}

// TestEverySubsetOfPartsLies: altered shards are noticed wherever they are.
func TestEverySubsetOfPartsLies(t *testing.T) {
	lies := map[string]func(*blobtest.Faulty){
		"altered":   (*blobtest.Faulty).Corrupt,
		"cut short": (*blobtest.Faulty).Truncate,
		"altered in the middle": func(f *blobtest.Faulty) {
			f.Alter(func(_ blob.Name, data []byte) []byte { data[len(data)*3/4] ^= 0x40; return data })
		},
		"empty":  func(f *blobtest.Faulty) { f.Alter(func(blob.Name, []byte) []byte { return nil }) },
		"longer": func(f *blobtest.Faulty) { f.Alter(func(_ blob.Name, data []byte) []byte { return append(data, 0) }) },
		"huge": func(f *blobtest.Faulty) {
			f.Alter(func(_ blob.Name, data []byte) []byte { return make([]byte, 4*limit) })
		},
	}
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		for _, name := range allNames {
			b.put(name, content)
		}
		b.flush()
		for what, lie := range lies {
			b.forEachSubset(func(liars []int) {
				b.heal()
				for _, part := range liars {
					lie(b.at[part])
				}
				b.reopen()
				for _, name := range allNames {
					got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
					enough := l.total-len(liars) >= l.data
					if what == "huge" && name != chunkName && len(liars) >= l.quorum() {
						continue // That may be a version that a write was told is stored.
					}
					switch {
					case enough && (err != nil || !bytes.Equal(got, content)):
						t.Errorf("%s at %v: %s is %q, %v", what, liars, name, got, err)
					case !enough && (err == nil && !bytes.Equal(got, content) || errors.Is(err, blob.ErrNotFound) && len(liars) > l.data):
						t.Errorf("%s at %v: %s is %q, %v", what, liars, name, got, err)
					}
					offers := 0
					got, err = b.GetAccepted(blob.ReadOnly(t.Context()), name, nil, limit, func(data []byte) error {
						if offers++; !bytes.Equal(data, content) {
							clear(data)
							return errors.New("it is something else")
						}
						return nil
					})
					if enough && err != nil || err == nil && !bytes.Equal(got, content) {
						t.Errorf("%s at %v: for a reader that can tell, %s is %q, %v", what, liars, name, got, err)
					}
					if len(liars) == 0 && offers != 1 {
						t.Errorf("%s, which nobody altered, was offered %d times", name, offers)
					}
				}
			})
		}
	})
}

// forged returns a shard of other content, all in order but that nobody wrote it.
func forged(t testing.TB, l layout, name blob.Name, sequence uint64, index int) []byte {
	return shardsOf(t, l, name, sequence, []byte("forged content"))[index]
}

// TestForgedShardsAreOutvoted: no part alone brings a version into the world.
func TestForgedShardsAreOutvoted(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		if l.total < 3 {
			t.Skip("one of two has nobody against it")
		}
		for forger := range l.total {
			for _, name := range changeable {
				for _, sequence := range []uint64{1, 1 << 60, maxSequence} {
					b := newBed(t, l)
					b.put(name, content)
					honest := b.snapshot(forger)[name]
					other := b.snapshot((forger + 1) % l.total)[name]
					fake := forged(t, l, name, sequence, forger)
					for what, data := range map[string][]byte{
						"a version of its own":               fake,
						"one behind the honest one":          slices.Concat(honest, forged(t, l, name, 1, forger)),
						"one in front of the honest one":     slices.Concat(forged(t, l, name, maxSequence, forger), honest),
						"the header with other content":      slices.Concat(honest[:len(honest)-1], []byte{honest[len(honest)-1] ^ 1}),
						"another part's shard":               other,
						"a shard of another blob":            forged(t, l, blobtest.Name(blob.KindManifest, 9), sequence, forger),
						"a shard of another part's position": forged(t, l, name, sequence, (forger+1)%l.total),
					} {
						b.reopen()
						b.plant(forger, name, data)
						if got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit); err != nil || !bytes.Equal(got, content) {
							t.Errorf("part %d has %s (sequence %d): %s is %q, %v", forger, what, sequence, name, got, err)
						}
						if info, err := b.Stat(t.Context(), name); err != nil || info.Size != int64(len(content)) {
							t.Errorf("part %d has %s: Stat(%s) = %+v, %v", forger, what, name, info, err)
						}
						// And nothing of it is there after the next write.
						b.put(name, []byte("new"))
						b.expect(name, []byte("new"))
						b.put(name, content)
						b.flush()
						b.whole(name)
					}
				}
			}
		}
	})
}

// TestChooser: where a forger isn't outvoted, whoever can tell is offered the rest.
func TestChooser(t *testing.T) {
	refused := errors.New("not authentic")
	accept := func(data []byte) error {
		if !bytes.Equal(data, content) {
			clear(data)
			return refused
		}
		return nil
	}
	for _, l := range []layout{{1, 2}, {1, 3}, {2, 5}} {
		for _, name := range allNames {
			b := newBed(t, l)
			b.put(name, content)
			b.flush()
			for part := range l.data { // as many as are needed to be read
				b.plant(part, name, forged(t, l, name, maxSequence, part))
			}
			buf := make([]byte, 100)
			got, err := b.GetAccepted(blob.ReadOnly(t.Context()), name, buf, limit, accept)
			if err != nil || !bytes.Equal(got, content) || &got[0] != &buf[0] {
				t.Errorf("%v: %s is %q, %v", l, name, got, err)
			}
			for part := range l.total {
				b.plant(part, name, forged(t, l, name, maxSequence, part))
			}
			if _, err := b.GetAccepted(t.Context(), name, nil, limit, accept); !errors.Is(err, refused) {
				t.Errorf("%v: with forged shards only, %s: %v", l, name, err)
			}
		}
	}
}

// TestNothingButGarbage: a part that makes up a blob doesn't make it exist.
func TestNothingButGarbage(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		b := newBed(t, l)
		for _, name := range changeable[1:] {
			b.plant(0, name, []byte("garbage"))
			if _, err := b.get(name); !errors.Is(err, blob.ErrNotFound) {
				t.Errorf("Get(%s): %v, want ErrNotFound", name, err)
			}
		}
	})
}

// TestAnotherLayout: the K and number of parts are part of what was agreed on.
func TestAnotherLayout(t *testing.T) {
	b := newBed(t, layout{2, 4})
	b.put(blob.Header(), content)
	b.Location = b.over(layout{3, 4})
	_, err := b.get(blob.Header())
	if !errors.Is(err, blob.ErrDamaged) || !errors.Is(err, errLayout) {
		t.Errorf("Get with another K: %v", err)
	}
}

// TestPartsInAnotherOrder: a shard says itself which it is.
func TestPartsInAnotherOrder(t *testing.T) {
	b := newBed(t, layout{2, 4})
	for _, name := range allNames {
		b.put(name, content)
	}
	slices.Reverse(b.at)
	slices.Reverse(b.memory)
	b.reopen()
	for _, name := range allNames {
		b.expect(name, content)
		b.whole(name)
	}
	b.at[0].Fail(blobtest.All, nil)
	b.at[3].Fail(blobtest.All, nil)
	for _, name := range allNames {
		b.expect(name, content)
	}
}

// TestNewerVersionMayBeUnreachable: an old version is no answer when the newest may
// have been acknowledged.
func TestNewerVersionMayBeUnreachable(t *testing.T) {
	l := layout{2, 5}
	b := newBed(t, l)
	b.put(manifestName, []byte("old"))
	b.flush()
	b.at[3].Fail(blobtest.All, nil)
	b.at[4].Fail(blobtest.All, nil)
	b.put(manifestName, []byte("new"))
	b.flush()
	b.heal()
	b.at[0].Fail(blobtest.All, nil)
	b.at[1].Fail(blobtest.All, nil)
	b.reopen()
	if got, err := b.Get(blob.ReadOnly(t.Context()), manifestName, nil, limit); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("two old shards and one new one: %q, %v", got, err)
	}
	b.at[1].Heal()
	b.expect(manifestName, []byte("new"))
}

func TestStalledPartDoesNotHoldARead(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, l)
			for _, name := range allNames {
				b.put(name, content)
			}
			for part := range l.total - l.data {
				b.at[part].Stall(blobtest.Get)
			}
			start := time.Now()
			for _, name := range allNames {
				b.expect(name, content)
			}
			if took := time.Since(start); took > time.Duration(l.total)*time.Second {
				t.Errorf("reading %d blobs took %v", len(allNames), took)
			}
			// The next ones ask those that answer.
			start = time.Now()
			b.expect(chunkName, content)
			if took := time.Since(start); took > 0 {
				t.Errorf("once it is known which parts are slow, reading a chunk took %v", took)
			}
			b.heal()
			b.settle()
		})
	})
}

func TestReadsPreferTheData(t *testing.T) {
	b := newBed(t, layout{4, 6})
	b.put(chunkName, content)
	b.reopen()
	b.expect(chunkName, content)
	for i := range b.at {
		if want := i < 4; (b.at[i].Calls(blobtest.Get) > 0) != want {
			t.Errorf("part %d was read: %v", i, !want)
		}
	}
	b.at[1].Fail(blobtest.Get, nil)
	for range 5 {
		b.expect(chunkName, content)
	}
	if n := b.at[1].Calls(blobtest.Get); n != 2 {
		t.Errorf("a part that is down was asked %d times", n-1)
	}
}

func TestGetCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, layout{2, 3})
		b.put(chunkName, content)
		for i := range b.at {
			b.at[i].Stall(blobtest.Get)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := b.Get(ctx, chunkName, nil, limit); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Get: %v", err)
		}
		b.settle()
	})
}

// TestTooLarge: an older version that is small isn't taken for a large one.
func TestTooLarge(t *testing.T) {
	l := layout{2, 5}
	b := newBed(t, l)
	b.put(manifestName, []byte("small"))
	b.flush()
	b.at[3].Fail(blobtest.All, nil)
	b.at[4].Fail(blobtest.All, nil)
	large := blobtest.Bytes(1, 100_000)
	b.put(manifestName, large)
	b.flush()
	b.heal()
	ctx := blob.ReadOnly(t.Context())
	for _, limit := range []int64{5, 1000, 99_999} {
		b.reopen()
		if got, err := b.Get(ctx, manifestName, nil, limit); !errors.Is(err, blob.ErrTooLarge) || len(got) > 0 {
			t.Errorf("Get with limit %d: %d bytes, %v", limit, len(got), err)
		}
	}
	b.expect(manifestName, large)
}
