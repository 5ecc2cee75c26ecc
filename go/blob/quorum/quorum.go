// Package quorum keeps blobs at several locations at once: a write succeeds when
// enough of them took it, a read tries them until one serves an authentic copy.
//
// A write waits for all the locations, so that a command that ends leaves none of
// them half written. A read doesn't wait for a location that stalls when another
// can serve. What such a location is still being asked, and what locations do beside
// their calls, Close waits for.
package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/background"
	"powercloud.unidatum.com/go/blob/pace"
	"powercloud.unidatum.com/go/blob/pool"
)

// Set is several locations that hold the same blobs. Its methods may be called
// from several goroutines at once.
type Set struct {
	locations []blob.Location
	quorum    int

	// pace has the locations that are down or slow read last, so that they cost
	// their timeout once and not once a blob.
	pace *pace.Pace
	// writing does the same for writes.
	writing *pace.Writing
	// hedged says that also what all locations are asked is done without one
	// that stalls.
	hedged     bool
	background *background.Tasks
	// memory is what blobs are read into. It isn't their readers' own, as a location
	// that is not waited for any longer may still write into it.
	memory *pool.Pool

	mu sync.Mutex
	// missed holds, by location, the first error of a write that it missed.
	missed []error
	// corrupt marks the locations of which a read had to pass over a corrupt copy.
	corrupt []bool
}

const (
	// pooledSize is the size of the buffers that are kept for the next reads, in
	// bytes; smaller ones aren't.
	pooledSize = 256 << 10
	// pooled bounds what is kept, in bytes.
	pooled = 64 << 20
)

// New returns the set of these locations, of which quorum must accept a write.
// A quorum of 0 means a majority. It refuses a quorum outside 1 to the number of
// locations, and an empty set.
func New(locations []blob.Location, quorum int) (*Set, error) {
	n := len(locations)
	if n == 0 {
		return nil, fmt.Errorf("no storage location is given")
	}
	if quorum == 0 {
		quorum = n/2 + 1
	}
	if quorum < 1 || quorum > n {
		return nil, fmt.Errorf("a quorum of %d is not possible with %d locations: it must be 1 to %d", quorum, n, n)
	}
	return &Set{
		locations:  slices.Clone(locations),
		quorum:     quorum,
		pace:       pace.New(n),
		background: background.New(0),
		memory:     pool.New(pooledSize, pooled),
		missed:     make([]error, n),
		writing:    pace.NewWriting(n),
		corrupt:    make([]bool, n),
	}, nil
}

// Hedge has GetEach do without locations that stall, once so many have answered
// that the newest version of what was acknowledged is among the answers; see
// Acknowledged. It is for
// those who read an object or write one, not for those who compare locations. It is
// called before the set is used.
func (s *Set) Hedge() { s.hedged = true }

// Hedged reports whether Hedge was called.
func (s *Set) Hedged() bool { return s.hedged }

// Locations returns the set's locations in the order given to New.
func (s *Set) Locations() []blob.Location { return slices.Clone(s.locations) }

// Concurrency returns how many calls can be worth having under way at once for the
// sake of the locations that are far away, or 0 if there are none; see
// blob.Concurrent.
func (s *Set) Concurrency() int {
	most := 0
	for _, location := range s.locations {
		if concurrent, ok := location.(blob.Concurrent); ok {
			most = max(most, concurrent.Concurrency())
		}
	}
	return most
}

// Quorum returns how many locations must accept a write.
func (s *Set) Quorum() int { return s.quorum }

// Acknowledged returns at how many locations a reader takes it that what any command
// wrote is, if it was acknowledged: it is the set's own quorum, but no more than the
// majority that is every other command's unless it is told something else. So a larger
// quorum makes writes of this command safer and its reads no less careful.
//
// What another command was told can't be seen. A write with a quorum below a majority
// may be at so few locations that readers don't see it while these don't answer, and
// aren't warned: until a repair, whoever must see it reads with the same quorum. Such a
// reader waits for as many locations, and is warned of as few that fail.
func (s *Set) Acknowledged() int { return min(s.quorum, len(s.locations)/2+1) }

// Close waits for what locations are still being asked, though nobody needs the
// answer any more, and has them finish what they go on with behind the calls that
// began it; see blob.Closer. It returns those that can't.
func (s *Set) Close(ctx context.Context) []Failure {
	s.background.Wait(ctx)
	return blob.FailuresOf(s.locations, s.each(func(_ int, location blob.Location) error {
		if closer, ok := location.(blob.Closer); ok {
			return closer.Close(ctx)
		}
		return nil
	}))
}

// Missed returns the locations, and the parts of locations, that missed a write
// during the set's life, each with the first reason, in the locations' order.
// Writes that reached their quorum all the same succeeded; such a location needs a
// repair.
func (s *Set) Missed() []Failure {
	s.mu.Lock()
	missed := slices.Clone(s.missed)
	s.mu.Unlock()
	var failures []Failure
	for i, location := range s.locations {
		if missed[i] != nil {
			failures = append(failures, Failure{Location: location, Err: missed[i]})
			continue
		}
		if healer, ok := location.(blob.Healer); ok {
			failures = append(failures, healer.Missed()...)
		}
	}
	return failures
}

// each calls fn for every location at once and returns once all have returned.
func (s *Set) each(fn func(i int, location blob.Location) error) []error {
	errs := make([]error, len(s.locations))
	var wait sync.WaitGroup
	// The last runs on the caller's goroutine: a set of one needs no other.
	last := len(s.locations) - 1
	for i, location := range s.locations[:last] {
		wait.Go(func() { errs[i] = fn(i, location) })
	}
	errs[last] = fn(last, s.locations[last])
	wait.Wait()
	return errs
}
