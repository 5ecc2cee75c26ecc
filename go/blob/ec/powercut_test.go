package ec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// volatile is a part that a power cut sets back: each blob to any of the states that
// it had since the last flush that covered it.
type volatile struct {
	*blobtest.Memory

	mu     sync.Mutex
	states map[blob.Name][][]byte // nil stands for none
	// covered are the blobs that the program has written or found with Stat: only
	// those does its flush make last.
	covered map[blob.Name]bool
}

func newVolatile(name string) *volatile {
	return &volatile{Memory: blobtest.NewMemory(name), states: map[blob.Name][][]byte{}, covered: map[blob.Name]bool{}}
}

// restart has another program use the part.
func (v *volatile) restart() {
	v.mu.Lock()
	defer v.mu.Unlock()
	clear(v.covered)
}

func (v *volatile) cover(name blob.Name) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.covered[name] = true
}

func (v *volatile) Stat(ctx context.Context, name blob.Name) (blob.Info, error) {
	v.cover(name)
	return v.Memory.Stat(ctx, name)
}

// note enters the state of a blob before it is changed, if it is the flushed one.
func (v *volatile) note(ctx context.Context, name blob.Name, after []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.states[name] == nil {
		before, err := v.Get(ctx, name, nil, 1<<40)
		if err != nil {
			before = nil
		}
		v.states[name] = [][]byte{before}
	}
	v.states[name] = append(v.states[name], after)
}

func (v *volatile) Put(ctx context.Context, name blob.Name, data []byte) error {
	v.note(ctx, name, bytes.Clone(data))
	v.cover(name)
	return v.Memory.Put(ctx, name, data)
}

func (v *volatile) Delete(ctx context.Context, name blob.Name) error {
	v.note(ctx, name, nil)
	v.cover(name)
	return v.Memory.Delete(ctx, name)
}

func (v *volatile) Flush(ctx context.Context) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name := range v.covered {
		delete(v.states, name)
	}
	return v.Memory.Flush(ctx)
}

// cut cuts the power. choose says which of the states is left, of so many.
func (v *volatile) cut(choose func(n int) int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for name, states := range v.states {
		if state := states[choose(len(states))]; state != nil {
			_ = v.Memory.Put(context.Background(), name, state)
		} else {
			_ = v.Memory.Delete(context.Background(), name)
		}
	}
	clear(v.states)
}

// TestPowerCuts replaces a blob, with and without flushing, by programs that each
// know nothing of the one before, reads and heals it, and cuts the power in between.
// A version that was flushed isn't lost unless for a newer one.
func TestPowerCuts(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for seed := range uint64(400) {
			powerCuts(t, l, seed)
		}
	})
}

func powerCuts(t *testing.T, l layout, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 1))
	var parts []blob.Location
	var disks []*volatile
	var faulty []*blobtest.Faulty
	for i := range l.total {
		disks = append(disks, newVolatile(fmt.Sprint(i)))
		faulty = append(faulty, blobtest.NewFaulty(disks[i]))
		parts = append(parts, faulty[i])
	}
	// failing has as many parts fail something as a write can do without.
	failing := func(ops blobtest.Op, most int) (heal func()) {
		for _, i := range random.Perm(l.total)[:random.IntN(most+1)] {
			faulty[i].Fail(ops, nil)
		}
		return func() {
			for _, f := range faulty {
				f.Heal()
			}
		}
	}
	clock := time.Unix(1_800_000_000, 0)
	var location *Location
	// own says that the program has written the version that is there now.
	own := false
	start := func() {
		own = false
		for _, disk := range disks {
			disk.restart()
		}
		var err error
		location, err = newLocation("ec", l.data, parts, func() time.Time {
			clock = clock.Add(time.Second)
			return clock
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	start()
	ctx := t.Context()
	// latest is the version that is there now, or -1.
	flushed, written, latest := -1, -1, -1
	var log []string
	lasts := func() {
		if own {
			flushed = latest
		}
	}
	for range 12 {
		switch action := random.IntN(10); {
		case action < 4:
			written++
			latest = written
			heal := func() {}
			if log = append(log, "put"); random.IntN(2) == 0 {
				log = append(log, "to some")
				heal = failing(blobtest.Put, l.total-l.quorum())
			}
			if err := location.Put(ctx, manifestName, fmt.Append(nil, written)); err != nil {
				t.Fatalf("seed %d, %v: Put: %v", seed, log, err)
			}
			own = true
			heal()
		case action == 8:
			log = append(log, "failing flush")
			heal := failing(blobtest.Flush, l.total)
			if location.Flush(ctx) == nil {
				lasts()
			}
			heal()
		case action == 9:
			log = append(log, "read")
			_, err := location.Get(ctx, manifestName, nil, limit)
			if closeErr := location.Close(ctx); closeErr != nil || flushed >= 0 && err != nil {
				t.Fatalf("seed %d, %v: Get: %v", seed, log, errors.Join(err, closeErr))
			}
		case action == 4:
			log = append(log, "flush")
			if err := location.Flush(ctx); err != nil {
				t.Fatalf("seed %d, %v: Flush: %v", seed, log, err)
			}
			lasts()
		case action == 5:
			log = append(log, "another program")
			start()
		case action == 6:
			log = append(log, "heal")
			if _, err := location.Heal(ctx, blob.HealOptions{}); err != nil {
				t.Fatalf("seed %d, %v: Heal: %v", seed, log, err)
			}
			lasts()
		case action == 7:
			log = append(log, "cut")
			for _, disk := range disks {
				disk.cut(random.IntN)
			}
			start()
			got, err := location.Get(ctx, manifestName, nil, limit)
			latest = -1
			if err == nil {
				_, err = fmt.Sscan(string(got), &latest)
			}
			if flushed >= 0 && (err != nil || latest < flushed) {
				t.Fatalf("seed %d, %v: the blob is %q, %v; version %d was flushed and %d written", seed, log, got, err, flushed, written)
			}
			if err := location.Close(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestPowerCutInAFlush: whichever parts had flushed, what was flushed before is there,
// or what would have been.
func TestPowerCutInAFlush(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		newBed(t, l).forEachSubset(func(failing []int) {
			var parts []blob.Location
			var disks []*volatile
			for i := range l.total {
				disks = append(disks, newVolatile(fmt.Sprint(i)))
				faulty := blobtest.NewFaulty(disks[i])
				if slices.Contains(failing, i) {
					// The first flush succeeds.
					faulty.Hook(func(op blobtest.Op, _ blob.Name) {
						if op == blobtest.Flush && faulty.Calls(blobtest.Flush) > 1 {
							faulty.Fail(blobtest.Flush, nil)
						}
					})
				}
				parts = append(parts, faulty)
			}
			location, err := New("ec", l.data, parts)
			if err != nil {
				t.Fatal(err)
			}
			for _, data := range []string{"old", "new"} {
				if err := location.Put(t.Context(), manifestName, []byte(data)); err != nil {
					t.Fatal(err)
				}
				err := location.Flush(t.Context())
				if want := data == "new" && l.total-len(failing) < l.quorum(); (err != nil) != want {
					t.Fatalf("with %v failing, Flush: %v", failing, err)
				}
			}
			for _, disk := range disks {
				disk.cut(func(int) int { return 0 })
			}
			got, err := location.Get(t.Context(), manifestName, nil, limit)
			if text := string(got); err != nil || text != "new" && (text != "old" || l.total-len(failing) >= l.quorum()) {
				t.Errorf("with %v failing to flush, the blob is %q, %v", failing, got, err)
			}
		})
	})
}
