package s3

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// errStalled says that a request was given up because it made no progress.
var errStalled = errors.New("the service stopped answering")

// patience is how slow a request may be.
type patience struct {
	// idle is how long it may go without moving a byte.
	idle time.Duration
	// grace is how long it may take in all, besides a second for every rate
	// bytes: without that, a byte now and then would hold it for ever.
	grace time.Duration
	rate  int64
}

// watch ends a request that makes no progress.
type watch struct {
	patience
	cancel context.CancelCauseFunc
	began  time.Time

	mu    sync.Mutex
	timer *time.Timer
	moved int64
}

// watched returns a context for a request, which ends with errStalled as its
// cause when nobody calls move for too long, and its watch, which must be
// stopped.
func watched(ctx context.Context, p patience) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{patience: p, cancel: cancel, began: time.Now()}
	w.timer = time.AfterFunc(p.idle, func() { cancel(errStalled) })
	return ctx, w
}

// move says that n more bytes went over the line.
func (w *watch) move(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved += int64(n)
	allowed := w.grace + time.Duration(w.moved/w.rate)*time.Second
	left := time.Until(w.began.Add(allowed))
	if left <= 0 {
		w.cancel(errStalled)
		return
	}
	w.timer.Reset(min(w.idle, left))
}

// stop ends the watch and releases the request's context.
func (w *watch) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer.Stop()
	w.cancel(nil)
}

// watchedBody is a body of bounded length whose bytes the watch is told of.
type watchedBody struct {
	io.ReadCloser
	watch *watch
	// left is how many more bytes it may have.
	left int64
	// done is called by Close, if it isn't nil.
	done func()
}

// Read returns errAnswerTooLarge, without a byte, for what is beyond the limit.
func (b *watchedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errAnswerTooLarge
	}
	if int64(len(p))-1 > b.left {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.move(n)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, errAnswerTooLarge
	}
	return n, err
}

// Close closes the body inside.
func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	if b.done != nil {
		b.done()
	}
	return err
}
