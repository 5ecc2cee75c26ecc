package pace

import (
	"context"
	"sync"
	"time"
)

// slowToFail is how long a write takes to fail at a location that isn't sent the
// next one at once: it was waited for, or asked several times.
const slowToFail = time.Second

// Writing remembers how writes to several locations failed, so that one that is down
// costs its timeout now and then and not once a blob. As it has missed a write, it
// needs a repair anyway. Its methods may be called from several goroutines at once.
type Writing struct {
	mu     sync.Mutex
	failed []failure
}

// failure is why a location isn't sent writes, and until when.
type failure struct {
	until time.Time
	why   error
}

// NewWriting returns the Writing of n locations.
func NewWriting(n int) *Writing { return &Writing{failed: make([]failure, n)} }

// Try runs a write to the location with index i. If one took long to fail there a
// short while ago, it returns that one's error instead.
func (w *Writing) Try(ctx context.Context, i int, write func() error) error {
	start := time.Now()
	w.mu.Lock()
	last := w.failed[i]
	w.mu.Unlock()
	if start.Before(last.until) {
		return last.why
	}
	err := write()
	if err != nil && ctx.Err() == nil && time.Since(start) >= slowToFail {
		w.mu.Lock()
		w.failed[i] = failure{time.Now().Add(lateFor), err}
		w.mu.Unlock()
	}
	return err
}
