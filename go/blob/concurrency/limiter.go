// Package concurrency finds out how many requests to a service are worth having
// under way at once, and lets no more through.
//
// A service far away answers one request after the other slowly, and many at
// once as fast as one: with 30 ms on the way and nothing else to wait for, eight
// requests at a time are 266 a second and sixty-four are 2,133. A service close
// by, or behind a thin line, gets nothing done sooner by more requests: they
// wait for each other. Which of them it is shows in how long an answer takes
// compared with how long it took at best.
//
// # How the limit moves
//
// Latencies are compared within classes of requests of one kind and about one
// size, so that a large upload doesn't look like a slow service. What a class
// takes at best, its baseline, is the least that the median of its last sixteen
// latencies has been. After about as many answers as the limit allows requests,
// all of them to requests that began since the last decision, the median of
// latency over baseline decides:
//
//   - More than 2: the requests wait for each other. By Little's law, more of
//     them add to the wait and not to the throughput. The limit falls in
//     proportion, to what would make it 2, but not below where it began.
//   - More than 2 where the limit began: it isn't our requests that the service
//     is slow with. What it takes now becomes the baseline.
//   - Up to 2, and the limit was in use: it doubles, as TCP's slow start does,
//     until it has fallen once. Then it grows by an eighth at a time.
//   - Up to 2, and the limit wasn't reached: it stays. Nothing was learned.
//   - The service said that it is overloaded, or didn't answer in time: the
//     limit halves, down to 1 if need be.
package concurrency

import (
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"
)

const (
	// tolerance is how many times its baseline a latency may be before requests
	// count as waiting for each other.
	tolerance = 2
	// ringSize is how many latencies of a class are remembered; its median
	// counts once half of them are there.
	ringSize = 16
	// leastSamples is how many answers a decision takes at least.
	leastSamples = 8
	// growth is the part of the limit by which it grows after the slow start.
	growth = 8
)

// Options are what a Limiter starts with.
type Options struct {
	// Start is the limit at first. Latency alone never lowers it further.
	Start int
	// Max is the most that the limit becomes, at least Start.
	Max int
	// Now tells the time; time.Now when nil.
	Now func() time.Time
}

// Limiter lets a limited number of requests through at once. Its methods may be
// called from several goroutines at once.
type Limiter struct {
	start, max int
	now        func() time.Time

	mu      sync.Mutex
	limit   int
	running int
	waiting []chan struct{} // in the order in which they came

	slowStart  bool
	generation int // of the decisions
	window     window
	classes    map[class]*latencies
}

// window is what was seen since the last decision.
type window struct {
	peak       int // the most requests that were under way
	ratios     []float64
	overloaded bool
}

// class is requests that should take the same time.
type class struct {
	kind      uint8
	magnitude int // of the size: its number of bits
}

// latencies are a class's last ones, in seconds.
type latencies struct {
	ring     [ringSize]float64
	count    int
	baseline float64 // 0 until enough were seen
}

// New returns a limiter that lets options.Start requests through at once.
func New(options Options) *Limiter {
	if options.Now == nil {
		options.Now = time.Now
	}
	start := max(options.Start, 1)
	return &Limiter{
		start: start, max: max(options.Max, start), now: options.Now,
		limit: start, slowStart: true, classes: map[class]*latencies{},
	}
}

// Limit returns how many requests are let through at once at present.
func (l *Limiter) Limit() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit
}

// Permit is one request's leave to be under way. It must be released once.
type Permit struct {
	limiter    *Limiter
	began      time.Time
	generation int
}

// Acquire waits, first come, first served, until a request may begin, and takes
// the time from then on. It returns ctx's error when ctx is done before.
func (l *Limiter) Acquire(ctx context.Context) (*Permit, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	if l.running >= l.limit || len(l.waiting) > 0 {
		turn := make(chan struct{})
		l.waiting = append(l.waiting, turn)
		l.mu.Unlock()
		select {
		case <-turn:
		case <-ctx.Done():
			l.abandon(turn)
			return nil, ctx.Err()
		}
		l.mu.Lock()
	} else {
		l.enter()
	}
	defer l.mu.Unlock()
	return &Permit{limiter: l, began: l.now(), generation: l.generation}, nil
}

// enter counts a request in.
func (l *Limiter) enter() {
	l.running++
	l.window.peak = max(l.window.peak, l.running)
}

// abandon takes a waiting request out, or gives back the turn it was given.
func (l *Limiter) abandon(turn chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.waiting, turn); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		return
	}
	l.running--
	l.admit()
}

// admit lets in whoever waits and may.
func (l *Limiter) admit() {
	for l.running < l.limit && len(l.waiting) > 0 {
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
		l.enter()
	}
}

// Outcome says what a request has told about the service's pace.
type Outcome uint8

const (
	// Answered says that the answer arrived, whatever it was.
	Answered Outcome = iota
	// Overloaded says that the service asks for fewer requests, or that no
	// answer came in time.
	Overloaded
	// Unknown says nothing: the request was given up, or never arrived.
	Unknown
)

// Release ends a request of a kind, which the caller numbers, that has moved a
// number of bytes.
func (p *Permit) Release(kind uint8, size int64, outcome Outcome) {
	l := p.limiter
	l.mu.Lock()
	defer l.mu.Unlock()
	// A request that began before the last decision says nothing about what
	// that has brought.
	if p.generation == l.generation {
		switch outcome {
		case Answered:
			latency := l.now().Sub(p.began).Seconds()
			l.window.ratios = append(l.window.ratios, l.class(kind, size).add(latency))
		case Overloaded:
			l.window.overloaded = true
		}
		if l.window.overloaded || len(l.window.ratios) >= max(l.limit, leastSamples) {
			l.decide()
		}
	}
	l.running--
	l.admit()
}

func (l *Limiter) class(kind uint8, size int64) *latencies {
	key := class{kind, bits.Len64(uint64(max(size, 0)))}
	if l.classes[key] == nil {
		l.classes[key] = &latencies{}
	}
	return l.classes[key]
}

// add remembers a latency, in seconds, and returns what multiple of the baseline
// it is, or 1 as long as there is none.
func (c *latencies) add(latency float64) float64 {
	c.ring[c.count%ringSize] = latency
	c.count++
	if c.count >= ringSize/2 {
		if now := c.median(); c.baseline == 0 || now < c.baseline {
			c.baseline = now
		}
	}
	if c.baseline <= 0 {
		return 1
	}
	return latency / c.baseline
}

// median returns the median of the latencies that are remembered.
func (c *latencies) median() float64 {
	recent := c.ring
	return median(recent[:min(c.count, ringSize)])
}

// median sorts values, of which there is at least one.
func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// decide sets the limit by what was seen, and begins anew.
func (l *Limiter) decide() {
	seen := l.window
	l.window = window{peak: l.running - 1, ratios: seen.ratios[:0]}
	l.generation++
	if seen.overloaded {
		l.limit = max(l.limit/2, 1)
		l.slowStart = false
		return
	}
	ratio := median(seen.ratios)
	switch {
	case ratio > tolerance && l.limit > l.start:
		l.limit = max(int(float64(l.limit)*tolerance/ratio), l.start)
		l.slowStart = false
	case ratio > tolerance:
		for _, c := range l.classes {
			if c.baseline > 0 {
				c.baseline = c.median()
			}
		}
	case seen.peak < l.limit:
		// It would grow without ever having been tried.
	case l.slowStart:
		l.limit = min(2*l.limit, l.max)
	default:
		l.limit = min(l.limit+max(l.limit/growth, 1), l.max)
	}
}
