package registrytest

import (
	"context"
	"slices"
)

// Store is what a registry is kept in; see registry.Objects.
type Store interface {
	List(ctx context.Context, folder string) ([]string, error)
	Read(ctx context.Context, name string, limit int64) ([]byte, error)
	Write(ctx context.Context, name string, content []byte) error
	Remove(ctx context.Context, name string) error
}

// Interleave runs writers side by side, one call of the store at a time. Whenever more
// than one is about to make a call, choose is asked for a number below how many there
// are, which says whose call is next. It returns when all writers have.
func Interleave(store Store, choose func(n int) int, writers ...func(Store)) {
	var waiting []*turns
	arrived := make(chan *turns)
	next := func() {
		if t := <-arrived; !t.over {
			waiting = append(waiting, t)
		}
	}
	for i, write := range writers {
		t := &turns{store: store, index: i, arrived: arrived, turn: make(chan struct{})}
		go func() {
			// Also when a test ends the goroutine.
			defer func() {
				t.over = true
				arrived <- t
			}()
			write(t)
		}()
		next()
	}
	for len(waiting) > 0 {
		chosen := 0
		if len(waiting) > 1 {
			// In an order that doesn't depend on who came first.
			slices.SortFunc(waiting, func(a, b *turns) int { return a.index - b.index })
			chosen = choose(len(waiting))
		}
		t := waiting[chosen]
		waiting = slices.Delete(waiting, chosen, chosen+1)
		t.turn <- struct{}{}
		next()
	}
}

// turns is a store as one writer sees it.
type turns struct {
	store   Store
	index   int
	arrived chan<- *turns
	turn    chan struct{}
	// over says that the writer has returned.
	over bool
}

// wait waits for the writer's turn.
func (t *turns) wait() {
	t.arrived <- t
	<-t.turn
}

func (t *turns) List(ctx context.Context, folder string) ([]string, error) {
	t.wait()
	return t.store.List(ctx, folder)
}

func (t *turns) Read(ctx context.Context, name string, limit int64) ([]byte, error) {
	t.wait()
	return t.store.Read(ctx, name, limit)
}

func (t *turns) Write(ctx context.Context, name string, content []byte) error {
	t.wait()
	return t.store.Write(ctx, name, content)
}

func (t *turns) Remove(ctx context.Context, name string) error {
	t.wait()
	return t.store.Remove(ctx, name)
}

// Every calls run once for every sequence of choices that it can make, and returns how
// many there were. run must ask the same again after the same answers.
func Every(run func(choose func(n int) int)) (runs int) {
	type choice struct{ taken, of int }
	var path []choice
	for {
		depth := 0
		run(func(n int) int {
			if depth == len(path) {
				path = append(path, choice{0, n})
			}
			depth++
			return path[depth-1].taken
		})
		runs++
		for len(path) > 0 && path[len(path)-1].taken+1 == path[len(path)-1].of {
			path = path[:len(path)-1]
		}
		if len(path) == 0 {
			return runs
		}
		path[len(path)-1].taken++
	}
}
