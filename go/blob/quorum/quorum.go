// Package quorum keeps blobs at several locations at once: a write succeeds when
// enough of them took it, a read tries them until one serves an authentic copy.
//
// Every call waits for all the locations it asked, so that a command that ends
// leaves none of them half written; no goroutine outlives its call.
package quorum

import (
	"fmt"
	"slices"
	"sync"

	"powercloud.unidatum.com/go/blob"
)

// Set is several locations that hold the same blobs. Its methods may be called
// from several goroutines at once.
type Set struct {
	locations []blob.Location
	quorum    int

	mu sync.Mutex
	// unreachable marks the locations that could not answer a read. They are
	// read last, so that one that is down costs its timeout once and not once a
	// blob.
	unreachable []bool
	// missed holds, by location, the first error of a write that it missed.
	missed []error
	writes ledger
	// corrupt marks the locations of which a read had to pass over a corrupt copy.
	corrupt []bool
}

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
		locations:   slices.Clone(locations),
		quorum:      quorum,
		unreachable: make([]bool, n),
		missed:      make([]error, n),
		corrupt:     make([]bool, n),
	}, nil
}

// Locations returns the set's locations in the order given to New.
func (s *Set) Locations() []blob.Location { return slices.Clone(s.locations) }

// Quorum returns how many locations must accept a write.
func (s *Set) Quorum() int { return s.quorum }

// Missed returns the locations that missed a write during the set's life, each
// with the first reason, in the locations' order. Writes that reached their
// quorum all the same succeeded; such a location needs a repair.
func (s *Set) Missed() []Failure {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures(s.missed)
}

// failures pairs the errors that are not nil with their locations.
func (s *Set) failures(errs []error) []Failure {
	var failures []Failure
	for i, err := range errs {
		if err != nil {
			failures = append(failures, Failure{s.locations[i], err})
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
