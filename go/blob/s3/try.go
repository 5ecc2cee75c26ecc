package s3

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"powercloud.unidatum.com/go/blob/concurrency"
)

// tries is how often a request is made in all.
const tries = 4

// The kinds of requests, for the limiter: each has a latency of its own.
const (
	kindPut uint8 = iota
	kindGet
	kindStat
	kindDelete
	kindList
)

// try makes a request until it succeeds, up to four times: again after network
// errors, throttling and the service's own errors, at once not again after
// anything else. request makes it through the exchange. Its error is returned as
// one line.
func (l *Location) try(ctx context.Context, kind uint8, want want, request func(x *exchange) error) error {
	for done := 1; ; done++ {
		f := l.once(ctx, kind, want, request)
		switch {
		case f.err == nil:
			return nil
		case !f.again:
			return f.err
		case done == tries:
			return fmt.Errorf("%w (%d tries)", f.err, tries)
		}
		if err := l.sleep(ctx, max(backoff(done), f.after)); err != nil {
			return err
		}
	}
}

// once makes a request once, when it is its turn.
func (l *Location) once(ctx context.Context, kind uint8, want want, request func(x *exchange) error) failure {
	permit, err := l.limiter.Acquire(ctx)
	if err != nil {
		return failure{err: err}
	}
	x := &exchange{client: l.client, patience: l.patience, want: want}
	err = request(x)
	f := failure{pace: concurrency.Answered}
	if err != nil {
		f = l.judge(ctx, x, err)
	}
	permit.Release(kind, x.moved, f.pace)
	return f
}

// backoff returns how long to wait after so many tries: 0.2 s, 0.8 s and 3.2 s,
// of which a random half is left out, so that those who failed together don't
// come back together.
func backoff(tries int) time.Duration {
	const first, factor = 200 * time.Millisecond, 4
	wait := first
	for range tries - 1 {
		wait *= factor
	}
	return wait/2 + rand.N(wait/2)
}

// sleep waits unless ctx ends before.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
