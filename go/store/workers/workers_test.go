package workers_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"powercloud.unidatum.com/go/store/workers"
)

func TestEach(t *testing.T) {
	for _, n := range []int{0, 1, 3, 100} {
		items := make([]int, n)
		for i := range items {
			items[i] = i
		}
		var mu sync.Mutex
		var running, most atomic.Int64
		done := map[int]int{}
		err := workers.Each(t.Context(), 3, items, func(_ context.Context, i int) error {
			now := running.Add(1)
			defer running.Add(-1)
			mu.Lock()
			defer mu.Unlock()
			most.Store(max(most.Load(), now))
			done[i]++
			return nil
		})
		if err != nil || len(done) != n || most.Load() > 3 {
			t.Errorf("of %d items %d were done, %d at once: %v", n, len(done), most.Load(), err)
		}
		for i, times := range done {
			if times != 1 {
				t.Errorf("item %d was done %d times", i, times)
			}
		}
	}
}

func TestEachStops(t *testing.T) {
	stop := errors.New("stop")
	var steps atomic.Int64
	err := workers.Each(t.Context(), 2, make([]int, 1000), func(context.Context, int) error {
		if steps.Add(1) == 5 {
			return stop
		}
		return nil
	})
	if err != stop {
		t.Errorf("an error of a step became %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{0, 10} {
		err := workers.Each(ctx, 2, make([]int, n), func(context.Context, int) error {
			t.Error("a step was run after the end")
			return nil
		})
		if err != context.Canceled {
			t.Errorf("with %d items after the end: %v", n, err)
		}
	}
}
