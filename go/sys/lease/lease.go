// Package lease times what DHCP leases of both protocols have in common: how
// long a client that found no server waits, when it asks for more time, whom,
// and when a lease is over (RFC 2131, section 4.4.5; RFC 8415, sections 14 and
// 18.2). What is asked, and what a lease holds, is the protocols' own.
package lease

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// leastPause is the least between two requests for more time, for long leases
// (RFC 2131, section 4.4.5).
const leastPause = time.Minute

// maxTold is how much of what wasn't taken from one answer is told.
const maxTold = 8

// Tell returns what to write into the log of what wasn't taken from a server's
// answer, given the same of its answer before: nothing of what was told already, and
// not much of one answer. A server that lies at each renewal would otherwise push
// everything else out of the log.
func Tell(before, ignored []string) []string {
	if slices.Equal(before, ignored) {
		return nil
	}
	if more := len(ignored) - maxTold; more > 0 {
		return append(slices.Clone(ignored[:maxTold]), fmt.Sprintf("%d more things", more))
	}
	return ignored
}

// Times are a lease's, each counted from when the lease was asked for. Renew is
// at most Rebind, which is at most Duration.
type Times struct {
	// Duration is how long the lease may be used; after Renew (T1 in the RFCs)
	// the server that gave it is asked again, after Rebind (T2) every server is.
	Duration, Renew, Rebind time.Duration
}

// Wait returns how long nothing is to be done for a lease of an age: until it is
// to be renewed, until the next try after that failed, or until it is over.
func (t Times) Wait(age time.Duration) time.Duration {
	if age < t.Renew {
		return t.Renew - age
	}
	until := t.Duration
	if age < t.Rebind {
		until = t.Rebind
	}
	// Half of what is left, but not too often; a short lease has less time.
	pause := max((until-age)/2, min(leastPause, t.Duration/16))
	return min(pause, t.Duration-age)
}

// Ask is an exchange about a lease of type T, retries included.
type Ask[T any] func(ctx context.Context, l *T) (*T, error)

// Extend asks for more time for a lease of an age and with these times: with
// renew the server that gave it, later with rebind every server.
func Extend[T any](ctx context.Context, t Times, age time.Duration, l *T, renew, rebind Ask[T]) (*T, error) {
	if age < t.Rebind {
		return Within(ctx, t.Rebind-age, l, renew)
	}
	return Within(ctx, t.Duration-age, l, rebind)
}

// Within asks about a lease for no longer than is left: an exchange must not go
// on when its time is over. With no time left it asks nobody and returns nil.
func Within[T any](ctx context.Context, left time.Duration, l *T, ask Ask[T]) (*T, error) {
	if left <= 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	return ask(ctx, l)
}
