// Package backoff says how long to wait before something that keeps failing is
// started again: longer each time, and briefly again once it has run well.
package backoff

import "time"

// Policy is how the waits grow. The zero value is the one for programs and
// components of a node.
type Policy struct {
	// Least is the first wait; 1 s when 0.
	Least time.Duration
	// Most is what the wait never exceeds; 1 min when 0.
	Most time.Duration
	// Forgiven is for how long something must have run for its earlier
	// failures not to count any more; 10 min when 0.
	Forgiven time.Duration
}

// Backoff counts the failures of one thing. It isn't safe for use by several
// goroutines at once.
type Backoff struct {
	policy   Policy
	failures int
}

// New returns a Backoff that has seen no failure yet.
func New(policy Policy) *Backoff {
	if policy.Least <= 0 {
		policy.Least = time.Second
	}
	if policy.Most <= 0 {
		policy.Most = time.Minute
	}
	policy.Most = max(policy.Most, policy.Least)
	if policy.Forgiven <= 0 {
		policy.Forgiven = 10 * time.Minute
	}
	return &Backoff{policy: policy}
}

// Ended records that the thing ended after it ran for a time, and returns how
// long to wait before it is started again. The wait doubles from one failure to
// the next.
func (b *Backoff) Ended(ran time.Duration) time.Duration {
	if ran >= b.policy.Forgiven {
		b.failures = 0
	}
	wait := b.policy.Least
	for range b.failures {
		if wait >= b.policy.Most/2 {
			wait = b.policy.Most
			break
		}
		wait *= 2
	}
	b.failures++
	return min(wait, b.policy.Most)
}

// Failures returns how often the thing has ended since it last ran well.
func (b *Backoff) Failures() int { return b.failures }
