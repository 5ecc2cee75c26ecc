// Package pace remembers how locations answered, so that one that is down or slow
// costs a wait now and then and not once a blob.
package pace

import (
	"errors"
	"sync"
	"time"
)

// Limits of how long a read waits for an answer before it does without.
const (
	leastPatience = 200 * time.Millisecond
	// MostPatience is the longest that a Pace advises to wait.
	MostPatience = 5 * time.Second
	// firstPatience is for a location that has not answered yet.
	firstPatience = time.Second
	// patienceFactor is how many times as long as usual an answer may take.
	patienceFactor = 5
	// lateFor is how long a location that was late or down isn't counted on.
	lateFor = 10 * time.Second
)

// ErrLate is the reason of a location that was not waited for any longer.
var ErrLate = errors.New("it does not answer in time")

// Pace is what is remembered of reads of several locations, which are known by their
// indices. Its methods may be called from several goroutines at once.
type Pace struct {
	mu sync.Mutex
	// until says until when a location is not counted on.
	until []time.Time
	// usual is how long answers took lately, or 0.
	usual []time.Duration
}

// New returns the Pace of n locations.
func New(n int) *Pace { return &Pace{until: make([]time.Time, n), usual: make([]time.Duration, n)} }

// Order returns the locations in the order in which to read them: those that are
// late or down come last.
func (p *Pace) Order() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	order := make([]int, 0, len(p.until))
	for _, late := range []bool{false, true} {
		for i := range p.until {
			if p.until[i].After(now) == late {
				order = append(order, i)
			}
		}
	}
	return order
}

// IsLate reports whether a location is not counted on.
func (p *Pace) IsLate(i int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.until[i].After(time.Now())
}

// Patience returns how long to wait for the answer of one of the given locations
// before something else is tried: several times as long as the slowest of them
// usually takes.
func (p *Pace) Patience(of map[int]bool) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	patience := leastPatience
	for i := range of {
		if p.usual[i] == 0 {
			patience = max(patience, firstPatience)
		}
		patience = max(patience, patienceFactor*p.usual[i])
	}
	return min(patience, MostPatience)
}

// Answered enters that a location answered after some time, or failed to.
func (p *Pace) Answered(i int, took time.Duration, failed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failed {
		p.until[i] = time.Now().Add(lateFor)
		return
	}
	p.until[i] = time.Time{}
	took = max(min(took, MostPatience), time.Microsecond)
	if p.usual[i] == 0 {
		p.usual[i] = took
		return
	}
	const weight = 8
	p.usual[i] += (took - p.usual[i]) / weight
}

// Late enters that locations were waited for longer than is usual.
func (p *Pace) Late(which map[int]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range which {
		p.until[i] = time.Now().Add(lateFor)
	}
}
