package ec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestPutNeedsOneShardMoreThanReading: for every subset of parts that don't take
// theirs, and in every way of not taking it.
func TestPutNeedsOneShardMoreThanReading(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		newBed(t, l).forEachSubset(func(failing []int) {
			for _, name := range allNames {
				for what, fault := range map[string]func(*blobtest.Faulty){
					"down": func(f *blobtest.Faulty) { f.Fail(blobtest.All, nil) },
					"full": func(f *blobtest.Faulty) { f.Fill(10) },
				} {
					b := newBed(t, l)
					for _, part := range failing {
						fault(b.at[part])
					}
					err := b.Put(t.Context(), name, content)
					enough := l.total-len(failing) >= l.quorum()
					if (err == nil) != enough {
						t.Errorf("with %v %s, Put(%s): %v", failing, what, name, err)
					}
					if err != nil {
						want := fmt.Sprintf("%d/%d shards stored, need %d: ", l.total-len(failing), l.total, l.quorum())
						if !strings.HasPrefix(err.Error(), want) {
							t.Errorf("Put fails with %q, want %q", err, want)
						}
						for _, part := range failing {
							if !strings.Contains(err.Error(), b.parts[part].String()+": ") {
								t.Errorf("%q doesn't name %s", err, b.parts[part])
							}
						}
						continue
					}
					b.expect(name, content)
					b.flush()
					// A fresh write survives the loss of one more part.
					b.heal()
					for part := range l.total {
						held := b.snapshot(part)
						b.restore(part, nil)
						b.reopen()
						if got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit); err != nil || !bytes.Equal(got, content) {
							t.Errorf("written without %v, and %d lost: %s is %q, %v", failing, part, name, got, err)
						}
						b.restore(part, held)
					}
				}
			}
		})
	})
}

// TestFailedReplacementKeepsTheBlob: whichever parts fail a write, the blob that was
// there can be read, or else the new one, and the next write works.
func TestFailedReplacementKeepsTheBlob(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		newBed(t, l).forEachSubset(func(failing []int) {
			for _, name := range changeable {
				b := newBed(t, l)
				b.put(name, []byte("old"))
				b.flush()
				for _, part := range failing {
					b.at[part].Fail(blobtest.Put, nil)
				}
				failed := b.Put(t.Context(), name, []byte("new")) != nil
				b.heal()
				for range 2 {
					got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
					if text := string(got); err != nil || text != "new" && (!failed || text != "old") {
						t.Errorf("%v refused a write that failed: %v: %s is %q, %v", failing, failed, name, got, err)
					}
					b.reopen()
				}
				b.put(name, []byte("newer"))
				b.flush()
				b.expect(name, []byte("newer"))
				b.whole(name)
			}
		})
	})
}

// TestCutShort ends a program at every change that it makes at a part while it
// replaces a blob, flushes and replaces it again. What a flush has covered, or
// something newer, can be read afterwards, also without any one of the parts.
func TestCutShort(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for _, name := range changeable {
			for cut := 0; ; cut++ {
				b := newBed(t, l)
				b.put(name, []byte("version 0"))
				b.flush()
				left := int64(cut)
				for _, part := range b.at {
					part.Hook(func(op blobtest.Op, _ blob.Name) {
						if op&(blobtest.Put|blobtest.Delete) != 0 && atomic.AddInt64(&left, -1) < 0 {
							part.Fail(blobtest.Writes, nil)
						}
					})
				}
				acknowledged, attempted := 0, 0
				for version := 1; version <= 3; version++ {
					attempted = version
					if b.Put(t.Context(), name, fmt.Appendf(nil, "version %d", version)) != nil || b.Flush(t.Context()) != nil {
						break
					}
					acknowledged = version
				}
				for _, part := range b.at {
					part.Hook(nil)
				}
				b.heal()
				b.reopen()
				allowed := func(got []byte) bool {
					for version := acknowledged; version <= attempted; version++ {
						if string(got) == fmt.Sprintf("version %d", version) {
							return true
						}
					}
					return false
				}
				for lost := -1; lost < l.total; lost++ {
					b.heal()
					if lost >= 0 {
						b.at[lost].Fail(blobtest.All, nil)
					}
					got, err := b.Get(blob.ReadOnly(t.Context()), name, nil, limit)
					if err != nil || !allowed(got) {
						t.Errorf("cut after %d changes, without part %d: %s is %q, %v; versions %d to %d were stored",
							cut, lost, name, got, err, acknowledged, attempted)
					}
				}
				b.heal()
				if _, err := b.Heal(t.Context(), blob.HealOptions{}); err != nil {
					t.Errorf("cut after %d changes: Heal: %v", cut, err)
				}
				b.put(name, []byte("last"))
				b.flush()
				b.expect(name, []byte("last"))
				b.whole(name)
				if acknowledged == 3 {
					break
				}
			}
		}
	})
}

func TestReplacedVersionsAreDropped(t *testing.T) {
	b := newBed(t, layout{2, 3})
	for _, name := range changeable {
		b.put(name, []byte("old"))
		b.flush()
		b.put(name, []byte("new"))
		for part := range b.at {
			if held := b.held(part, name); len(held) != 2 || held[0] <= held[1] {
				t.Errorf("before the flush, part %d holds versions %v of %s", part, held, name)
			}
		}
		b.flush()
		for part := range b.at {
			if held := b.held(part, name); len(held) != 1 {
				t.Errorf("after the flush, part %d holds versions %v of %s", part, held, name)
			}
		}
	}
	b.put(chunkName, []byte("old"))
	b.put(chunkName, []byte("new"))
	if held := b.held(0, chunkName); len(held) != 1 || held[0] != 0 {
		t.Errorf("a part holds versions %v of a chunk", held)
	}
}

// TestReplacingTwiceWithoutAFlush: what was flushed stays until something newer was.
func TestReplacingTwiceWithoutAFlush(t *testing.T) {
	b := newBed(t, layout{4, 6})
	b.put(manifestName, []byte("flushed"))
	b.flush()
	b.put(manifestName, []byte("second"))
	before := b.at[0].Calls(blobtest.Flush)
	b.put(manifestName, []byte("third"))
	if n := b.at[0].Calls(blobtest.Flush) - before; n != 1 {
		t.Errorf("parts were flushed %d times before what they have of the flushed version was dropped", n)
	}
	b.flush()
	b.expect(manifestName, []byte("third"))
	b.whole(manifestName)
	// Not if they can't be flushed.
	b.put(manifestName, []byte("fourth"))
	for _, part := range b.at {
		part.Fail(blobtest.Flush, nil)
	}
	if err := b.Put(t.Context(), manifestName, []byte("fifth")); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("Put: %v", err)
	}
	b.expect(manifestName, []byte("fourth"))
}

// TestFlush: a blob is durable once K+1 parts took it and flushed.
func TestFlush(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		newBed(t, l).forEachSubset(func(failing []int) {
			b := newBed(t, l)
			b.put(chunkName, content)
			for _, part := range failing {
				b.at[part].Fail(blobtest.Flush, nil)
			}
			err := b.Flush(t.Context())
			if enough := l.total-len(failing) >= l.quorum(); (err == nil) != enough || !enough && !errors.Is(err, blobtest.ErrFault) {
				t.Errorf("Flush without %v: %v", failing, err)
			}
			b.heal()
			b.flush()
		})
	})
	// A part that missed the write doesn't count, and is named.
	b := newBed(t, layout{2, 4})
	b.at[0].Fail(blobtest.Put, blobtest.ErrFull)
	b.put(chunkName, content)
	b.heal()
	b.at[1].Fail(blobtest.Flush, nil)
	if err := b.Flush(t.Context()); !errors.Is(err, blobtest.ErrFault) || !errors.Is(err, blobtest.ErrFull) {
		t.Errorf("Flush: %v", err)
	}
}

func TestDeleteMustReachEveryPart(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for failing := range l.total {
			for _, name := range allNames {
				b := newBed(t, l)
				b.put(name, content)
				b.flush()
				b.at[failing].Fail(blobtest.Delete, nil)
				err := b.Delete(t.Context(), name)
				if !errors.Is(err, blobtest.ErrFault) || !strings.Contains(err.Error(), b.parts[failing].String()+": ") {
					t.Errorf("Delete(%s) without part %d: %v", name, failing, err)
				}
				b.heal()
				if err := b.Delete(t.Context(), name); err != nil {
					t.Errorf("Delete(%s) again: %v", name, err)
				}
				b.at[failing].Fail(blobtest.Flush, nil)
				if err := b.Flush(t.Context()); !errors.Is(err, blobtest.ErrFault) {
					t.Errorf("Flush after Delete(%s): %v", name, err)
				}
				b.heal()
				b.flush()
				if _, err := b.get(name); !errors.Is(err, blob.ErrNotFound) {
					t.Errorf("Get(%s) after Delete: %v", name, err)
				}
			}
		}
	})
}

// TestPutMissing writes what is missing only.
func TestPutMissing(t *testing.T) {
	b := newBed(t, layout{2, 4})
	puts := func() (n [4]int) {
		for i := range n {
			n[i] = b.at[i].Calls(blobtest.Put)
		}
		return n
	}
	put := func() {
		t.Helper()
		if err := b.PutMissing(t.Context(), chunkName, content); err != nil {
			t.Fatal(err)
		}
	}
	put()
	put()
	if n := puts(); n != [4]int{1, 1, 1, 1} {
		t.Errorf("the shards were written %v times", n)
	}
	b.plant(1, chunkName, nil)
	b.plant(3, chunkName, []byte("of another length"))
	put()
	if n := puts(); n != [4]int{1, 2, 1, 2} {
		t.Errorf("with two missing, the shards were written %v times", n)
	}
	b.whole(chunkName)
	b.at[0].Fail(blobtest.All, nil)
	put()
	b.at[1].Fail(blobtest.All, nil)
	if err := b.PutMissing(t.Context(), chunkName, content); !errors.Is(err, blobtest.ErrFault) {
		t.Errorf("PutMissing with two parts of three that are needed: %v", err)
	}
	// Two shards at their parts and one that is newly written are enough.
	b.heal()
	b.plant(2, chunkName, nil)
	b.at[3].Fail(blobtest.All, nil)
	put()
}

// TestPutMissingOfAVersion: a blob that is there already is not written again, only to
// the parts that lack it; and what is there counts as the writer's.
func TestPutMissingOfAVersion(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for _, name := range changeable {
			b := newBed(t, l)
			put := func(data []byte, want int) {
				t.Helper()
				before := 0
				for _, part := range b.at {
					before += part.Calls(blobtest.Put)
				}
				if err := b.PutMissing(t.Context(), name, data); err != nil {
					t.Fatal(err)
				}
				after := 0
				for _, part := range b.at {
					after += part.Calls(blobtest.Put)
				}
				if after-before != want {
					t.Errorf("PutMissing(%s) writes %d shards, want %d", name, after-before, want)
				}
				b.flush()
				b.whole(name)
				b.expect(name, data)
			}
			put(content, l.total)
			put(content, 0)
			b.reopen()
			put(content, 0)
			b.plant(l.total-1, name, nil)
			put(content, 1)
			put([]byte("another"), l.total)

			b.at[0].Fail(blobtest.Stat|blobtest.Put, nil)
			err := b.PutMissing(t.Context(), name, []byte("another"))
			if wants := l.total > l.quorum(); (err == nil) != wants {
				t.Errorf("PutMissing(%s) with a part that fails: %v", name, err)
			}
		}
	})
}

func TestCreateTakesBackWhatFails(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for _, name := range allNames {
			b := newBed(t, l)
			for part := range l.total - 1 {
				b.at[part].Fail(blobtest.Put, nil)
			}
			if err := b.Create(t.Context(), name, content); !errors.Is(err, blobtest.ErrFault) {
				t.Errorf("Create(%s): %v", name, err)
			}
			b.heal()
			b.plant(l.total-1, name, []byte("another's"))
			if err := b.Create(t.Context(), name, content); !errors.Is(err, blob.ErrExists) {
				t.Errorf("Create(%s) where a part has something: %v", name, err)
			}
			for part := range l.total {
				if held := b.snapshot(part); (len(held) > 0) != (part == l.total-1) {
					t.Errorf("part %d holds %v", part, held)
				}
			}
		}
	})
}

// TestMadeUpSequences: a part can't use up the sequences.
func TestMadeUpSequences(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		if l.total < 3 {
			t.Skip("one of two has nobody against it")
		}
		b := newBed(t, l)
		b.put(manifestName, content)
		b.plant(0, manifestName, forged(t, l, manifestName, maxSequence, 0))
		for version := range 3 {
			data := fmt.Appendf(nil, "version %d", version)
			b.put(manifestName, data)
			b.flush()
			b.expect(manifestName, data)
		}
		if held := b.held(0, manifestName); held[0] > uint64(b.clock.Add(time.Hour).UnixNano()) {
			t.Errorf("the sequence has become %v", held)
		}
	})
}

// TestClockBehind: a new version is newer than what is there, whatever the clock
// says.
func TestClockBehind(t *testing.T) {
	b := newBed(t, layout{2, 5})
	b.clock = b.clock.AddDate(20, 0, 0)
	b.put(manifestName, []byte("from the future"))
	b.flush()
	b.clock = b.clock.AddDate(-30, 0, 0)
	// So many miss it that the earlier one can still be put together.
	b.at[0].Fail(blobtest.All, nil)
	b.at[1].Fail(blobtest.All, nil)
	b.put(manifestName, []byte("from the past"))
	b.flush()
	b.heal()
	b.reopen().expect(manifestName, []byte("from the past"))
}

// TestTwoPrograms replace one blob at once, again and again. In the end it is one of
// theirs.
func TestTwoPrograms(t *testing.T) {
	for _, l := range []layout{{2, 3}, {4, 6}} {
		b := newBed(t, l)
		b.put(manifestName, []byte("first"))
		b.flush()
		const rounds = 50
		var wait sync.WaitGroup
		for program := range 2 {
			location := b.over(l)
			wait.Go(func() {
				for round := range rounds {
					err := location.Put(context.Background(), manifestName, fmt.Appendf(nil, "program %d, round %d", program, round))
					if err != nil {
						t.Errorf("Put: %v", err)
					}
				}
			})
		}
		wait.Wait()
		// What the parts have is a mixture, perhaps. A last word settles it.
		b.reopen()
		if got, err := b.get(manifestName); err == nil && !bytes.HasPrefix(got, []byte("program ")) && string(got) != "first" {
			t.Errorf("the blob is %q", got)
		}
		b.put(manifestName, content)
		b.flush()
		b.whole(manifestName)
		b.expect(manifestName, content)
	}
}

// TestLargeManifest is replaced without holding the shards of both versions.
func TestLargeManifest(t *testing.T) {
	b := newBed(t, layout{3, 5})
	const size = 3*inspectLimit + 12345
	for version := range 3 {
		data := blobtest.Bytes(version, size)
		b.put(manifestName, data)
		if version == 1 {
			if held := b.held(4, manifestName); len(held) != 2 {
				t.Errorf("a part holds versions %v", held)
			}
		}
		got, err := b.Get(t.Context(), manifestName, nil, size)
		if err != nil || !bytes.Equal(got, data) {
			t.Fatalf("version %d: %d bytes, %v", version, len(got), err)
		}
		b.flush()
		b.whole(manifestName)
	}
	b.restore(1, nil)
	if health, err := b.Heal(t.Context(), blob.HealOptions{}); err != nil || health.Repaired != 1 {
		t.Errorf("Heal: %+v, %v", health, err)
	}
	b.whole(manifestName)
}
