// Package leasetest plays servers and the time for the tests of DHCP clients, and
// records what happens.
package leasetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
)

// Play is a clock and a record of what happens to a client of leases of type T.
// Each exchange takes its next outcome from a script; the play ends with the
// script.
type Play[T any] struct {
	// Script is what exchanges come to: each is a *T or an error.
	Script []any
	// Moves are when the interface moves: the time from the start, and from one
	// move to the next, in which nothing else happens.
	Moves []time.Duration

	time   time.Time
	events []string
	moved  chan struct{}
	stop   context.CancelFunc
}

// start is when plays begin.
var start = time.Unix(0, 0)

// Moved is what a client hears moves on.
func (p *Play[T]) Moved() <-chan struct{} {
	if p.moved == nil {
		p.moved = make(chan struct{}, 1)
	}
	return p.moved
}

// Clock returns the play's clock, on which waits are over at once.
func (p *Play[T]) Clock() lease.Clock {
	p.time = start
	return lease.Clock{
		Now: func() time.Time { return p.time }, After: p.after, Jitter: func() float64 { return 0.5 },
	}
}

// after lets the time pass at once, unless the interface moves before.
func (p *Play[T]) after(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	if len(p.Moves) > 0 && p.Moves[0] <= d {
		p.time = p.time.Add(p.Moves[0])
		p.Moves = p.Moves[1:]
		p.moved <- struct{}{}
		return c
	}
	if len(p.Moves) > 0 {
		p.Moves[0] -= d
	}
	p.time = p.time.Add(d)
	c <- p.time
	return c
}

// Exchange records an exchange and returns its outcome.
func (p *Play[T]) Exchange(what string) (*T, error) {
	p.Record(fmt.Sprintf("%v %s", p.time.Sub(start), what))
	if len(p.Script) == 0 {
		p.stop()
		return nil, context.Canceled
	}
	outcome := p.Script[0]
	p.Script = p.Script[1:]
	if l, ok := outcome.(*T); ok {
		return l, nil
	}
	return nil, outcome.(error)
}

// Record records that something happened.
func (p *Play[T]) Record(event string) { p.events = append(p.events, event) }

// Run runs a client that uses the play until its end, and compares what happened
// with the events wanted, which commas part.
func (p *Play[T]) Run(t *testing.T, client *lease.Client[T], want string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	p.stop = stop
	if err := client.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	if got := strings.Join(p.events, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
