package lease

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// firstPause is how long a client that found no server waits at first before it
// looks again. The pause doubles from one time to the next.
const firstPause = time.Second

// Protocol is what a Client asks with, and whom it tells. It calls one method at
// a time.
type Protocol[T any] interface {
	// Times returns a lease's times.
	Times(l *T) Times
	// Acquire finds a server and gets a lease.
	Acquire(ctx context.Context) (*T, error)
	// Extend asks for more time for a lease of an age. Without a lease and
	// without an error nothing has changed.
	Extend(ctx context.Context, l *T, age time.Duration) (*T, error)
	// Check finds out whether a lease of an age can still be used, after the
	// interface may have moved to another network. It returns as Extend does.
	Check(ctx context.Context, l *T, age time.Duration) (*T, error)
	// Use is called with each lease that is new or has got more time, and with
	// the one before it, nil for a lease that was found anew.
	Use(before, l *T)
	// Lose is called when a lease may not be used any more, with the refusal, or
	// with nil when its time is over.
	Lose(l *T, refusal error)
	// Missing is called when no server granted a lease, with how long it takes
	// till the next try.
	Missing(wait time.Duration, err error)
	// NotExtended is called when a lease got no more time, but can be used on.
	NotExtended(l *T, err error)
}

// Clock is the time as a Client sees it.
type Clock struct {
	Now   func() time.Time
	After func(time.Duration) <-chan time.Time
	// Jitter returns a number from 0 to 1, by chance.
	Jitter func() float64
}

// SystemClock returns the machine's clock.
func SystemClock() Clock {
	return Clock{Now: time.Now, After: time.After, Jitter: rand.Float64}
}

// vary makes a wait longer or shorter by a quarter at most, so that many
// machines that start together don't ask together.
func (c Clock) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + c.Jitter()/2))
}

// Client gets and keeps a lease of type T for one interface.
type Client[T any] struct {
	Protocol Protocol[T]
	// Refused is wrapped by the error of an exchange in which a server refused
	// the lease.
	Refused error
	// LongestPause bounds how long a client that found no server waits before it
	// looks again.
	LongestPause time.Duration
	// Moved is sent on when the interface may be on another network.
	Moved <-chan struct{}
	Clock Clock
}

// Run gets and keeps a lease until ctx is done, and returns ctx's error. The
// lease isn't given back then: whoever starts again gets the same, and
// connections go on.
func (c *Client[T]) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		l, began, err := c.find(ctx)
		if err != nil {
			break
		}
		c.keep(ctx, l, began)
	}
	return ctx.Err()
}

// find looks for a server until there is one. It returns when the lease began.
func (c *Client[T]) find(ctx context.Context) (*T, time.Time, error) {
	pause := firstPause
	for {
		began := c.Clock.Now()
		l, err := c.Protocol.Acquire(ctx)
		if err == nil {
			return l, began, nil
		}
		if ctx.Err() != nil {
			return nil, began, ctx.Err()
		}
		// Often enough for people to see, not so often that it fills the log.
		c.Protocol.Missing(pause, err)
		select {
		case <-ctx.Done():
			return nil, began, ctx.Err()
		case <-c.Moved:
			pause = firstPause
			continue
		case <-c.Clock.After(c.Clock.vary(pause)):
		}
		pause = min(2*pause, c.LongestPause)
	}
}

// keep uses a lease until it is over or refused.
func (c *Client[T]) keep(ctx context.Context, l *T, began time.Time) {
	c.Protocol.Use(nil, l)
	for {
		times, age := c.Protocol.Times(l), c.Clock.Now().Sub(began)
		if age >= times.Duration {
			c.Protocol.Lose(l, nil)
			return
		}
		ask := c.Protocol.Extend
		select {
		case <-ctx.Done():
			return
		case <-c.Moved:
			ask = c.Protocol.Check
		case <-c.Clock.After(times.Wait(age)):
		}
		asked := c.Clock.Now()
		next, err := ask(ctx, l, asked.Sub(began))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && next != nil:
			c.Protocol.Use(l, next)
			l, began = next, asked
		case errors.Is(err, c.Refused):
			c.Protocol.Lose(l, err)
			return
		case err != nil:
			c.Protocol.NotExtended(l, err)
		}
	}
}
