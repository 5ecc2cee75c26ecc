// Package background keeps track of what goes on behind the calls that began it, so
// that a program can wait for it before it ends.
package background

import (
	"context"
	"sync"
)

// Tasks runs tasks beside those who found them to do. Its methods may be called from
// several goroutines at once.
type Tasks struct {
	slots chan struct{}

	mu      sync.Mutex
	running int
	// idle is closed when nothing runs, if somebody waits for that.
	idle    chan struct{}
	cancels map[int]context.CancelFunc
	next    int
}

// New returns Tasks of which at most so many run beside their callers.
func New(most int) *Tasks {
	return &Tasks{slots: make(chan struct{}, most), cancels: map[int]context.CancelFunc{}}
}

// Run runs a task beside the caller or, when enough are running, before it
// returns. A task outlives ctx, but not Wait.
func (t *Tasks) Run(ctx context.Context, task func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := t.enter(cancel)
	select {
	case t.slots <- struct{}{}:
		go func() {
			defer done()
			defer func() { <-t.slots }()
			task(ctx)
		}()
	default:
		defer done()
		task(ctx)
	}
}

// enter counts a task that cancel would end. The function that it returns leaves.
func (t *Tasks) enter(cancel context.CancelFunc) (leave func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	id := t.next
	t.next++
	t.running++
	t.cancels[id] = cancel
	return func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.cancels, id)
		t.running--
		if t.running == 0 && t.idle != nil {
			close(t.idle)
			t.idle = nil
		}
	}
}

// Abandon ends a call that is under way, and has it counted until it has ended, which
// ended returns after: it may take its time to notice.
func (t *Tasks) Abandon(cancel context.CancelFunc, ended func()) {
	leave := t.enter(cancel)
	cancel()
	go func() {
		defer leave()
		ended()
	}()
}

// Wait returns once nothing is running. When ctx ends before, it ends what is
// running.
func (t *Tasks) Wait(ctx context.Context) {
	idle := t.ended()
	select {
	case <-idle:
		return
	case <-ctx.Done():
	}
	t.mu.Lock()
	for _, cancel := range t.cancels {
		cancel()
	}
	t.mu.Unlock()
	<-idle
}

// ended returns a channel that is closed when nothing is running.
func (t *Tasks) ended() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
	}
	return t.idle
}
