// Package ec keeps blobs at several other locations, of which any K can be put
// together again to a blob: an erasure-coded set.
//
// A blob becomes n shards, one for each part, with a Reed-Solomon code: K pieces
// of the blob, and n-K that are computed from them. Any K shards rebuild the blob,
// so n-K parts may be lost, for n/K times the data.
//
// # Whom to believe
//
// No part is trusted, and no key is seen here. A shard's header states the sums of
// all n shards, so that those who hold a version agree on all of it. A version is
// read only when K parts agree, and then altered shards are found by their sums.
// One part can lie about its own shard only. Where several versions can be put
// together, as after an interrupted write or where K is 1, a reader that knows how
// to authenticate a blob is offered one after the other; see blob.Chooser.
//
// # Replacing a blob
//
// A part replaces what it has by what it is sent, each part by itself. A write
// that is cut short would leave some parts with the new version and some with the
// old one, and perhaps too few of either. So a part is sent the new shard together
// with the old one, which stays behind it until a flush has made sure that enough
// parts have the new version; only then is it dropped. At any moment there is one
// version, at least, of which enough shards exist.
//
// Chunks are written once: their content follows from their name. For them there
// is no older version to keep, and the same content always becomes the same shards.
//
// # What the parts don't tell
//
// A part that can't be read is not one that has nothing. A write is acknowledged
// only when K+1 parts took it, or all when there are no more; so a blob is absent
// only when so many parts answered that a write's K+1 can't all be among the
// others. What fewer parts hold is left by a write that was never acknowledged.
package ec

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/background"
	"powercloud.unidatum.com/go/blob/ledger"
	"powercloud.unidatum.com/go/blob/pace"
	"powercloud.unidatum.com/go/blob/pool"
	"powercloud.unidatum.com/go/blob/quorum"
)

// Location is an erasure-coded set of locations. Close it, or what it does in the
// background may be cut short.
type Location struct {
	given string
	parts []blob.Location
	*coder
	// set is the parts, for listing them side by side.
	set *quorum.Set
	// now tells the time for new versions.
	now func() time.Time

	names names
	// memory bounds what large shards take while they are written, in bytes.
	memory     *semaphore.Weighted
	shards     *pool.Pool
	background *background.Tasks
	pace       *pace.Pace
	writing    *pace.Writing

	mu     sync.Mutex
	writes ledger.Ledger
	// missed has, by part, the first error of a write that it missed.
	missed []error
	// deletes says that parts deleted something that not all have flushed.
	deletes bool
	// replaced has the blobs that were written while parts had older versions,
	// which stay behind the new one until it is flushed.
	replaced map[blob.Name]replacement
	// doubt is why a manifest that was read may not be the newest.
	doubt string
	// mended marks parts that a read has sent a shard to since they were flushed,
	// spurned those that refused one.
	mended, spurned []bool
}

var (
	_ blob.Location    = (*Location)(nil)
	_ blob.Temporaries = (*Location)(nil)
	_ blob.Creator     = (*Location)(nil)
	_ blob.Completer   = (*Location)(nil)
	_ blob.Chooser     = (*Location)(nil)
	_ blob.Doubter     = (*Location)(nil)
	_ blob.Healer      = (*Location)(nil)
	_ blob.Closer      = (*Location)(nil)
	_ blob.Concurrent  = (*Location)(nil)
)

// largeMemory is what shards of large blobs may take while they are written.
const largeMemory = 64 << 20

// New returns the set of these parts, any data of which rebuild a blob. name is
// what the set is called, as it was given in --repo. The parts must be different
// places.
func New(name string, data int, parts []blob.Location) (*Location, error) {
	return newLocation(name, data, parts, time.Now)
}

func newLocation(name string, data int, parts []blob.Location, now func() time.Time) (*Location, error) {
	n := len(parts)
	if n > maxTotal || data < 1 || data >= n {
		return nil, fmt.Errorf("an erasure-coded set of %d parts with K = %d is not possible: K must be at least 1 and less than the number of parts, which is at most %d", n, data, maxTotal)
	}
	coder, err := newCoder(layout{data, n})
	if err != nil {
		return nil, err
	}
	set, err := quorum.New(parts, data+1)
	if err != nil {
		return nil, err
	}
	return &Location{
		given: name, parts: slices.Clone(parts), coder: coder, set: set, now: now,
		memory: semaphore.NewWeighted(largeMemory), shards: pool.New(page, pooled),
		background: background.New(mends), pace: pace.New(n), writing: pace.NewWriting(n),
		replaced: map[blob.Name]replacement{}, missed: make([]error, n), mended: make([]bool, n), spurned: make([]bool, n),
	}, nil
}

// String returns the set as it was given.
func (l *Location) String() string { return l.given }

// Parts returns the locations that the set consists of, in the order given.
func (l *Location) Parts() []blob.Location { return slices.Clone(l.parts) }

// Concurrency returns how many calls can be worth having under way: as many as for
// the part that is worth most, or 1; see blob.Concurrent.
func (l *Location) Concurrency() int { return max(l.set.Concurrency(), 1) }

// Missed returns the parts that missed a write which succeeded; see blob.Healer.
func (l *Location) Missed() blob.Failures {
	l.mu.Lock()
	defer l.mu.Unlock()
	return blob.FailuresOf(l.parts, l.missed)
}

// Doubt says whether a manifest was read from so few parts that a newer version may be at
// the others; see blob.Doubter.
func (l *Location) Doubt() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doubt
}

// Probe returns nil when so many parts answer that blobs can be read.
func (l *Location) Probe(ctx context.Context) error { return l.probe(ctx, l.data) }

// ProbeAll returns nil when every part answers.
func (l *Location) ProbeAll(ctx context.Context) error { return l.probe(ctx, l.total) }

func (l *Location) probe(ctx context.Context, need int) error {
	errs := l.each(func(_ int, part blob.Location) error { return part.Probe(ctx) })
	return l.enough(ctx, errs, need, "parts answer")
}

// each calls fn for every part at once and returns once all have returned.
func (l *Location) each(fn func(i int, part blob.Location) error) []error {
	errs := make([]error, len(l.parts))
	var wait sync.WaitGroup
	for i, part := range l.parts[1:] {
		wait.Go(func() { errs[i+1] = fn(i+1, part) })
	}
	errs[0] = fn(0, l.parts[0])
	wait.Wait()
	return errs
}

// enough returns nil when at least need parts succeeded, or an error that says how
// many did what, and why the others didn't.
func (l *Location) enough(ctx context.Context, errs []error, need int, did string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := countNil(errs)
	if n >= need {
		return nil
	}
	return l.failures(fmt.Sprintf("%d/%d %s, need %d", n, l.total, did, need), errs)
}

func countNil(errs []error) int {
	n := 0
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}
