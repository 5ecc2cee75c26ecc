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
	// until says until when a location is not counted on, and why with what it failed;
	// nil if it was late.
	until []time.Time
	why   []error
	// usual is how long answers took lately, apart for small blobs and for
	// large ones, which take the longer the thinner the line is.
	usual []map[Size]time.Duration
}

// Size says of a read whether it is of a blob that may be large.
type Size bool

// The sizes.
const (
	Small Size = false
	Large Size = true
)

// SizeOf returns the Size of blobs of at most so many bytes.
func SizeOf(limit int64) Size { return limit > 256<<10 }

// New returns the Pace of n locations.
func New(n int) *Pace {
	p := &Pace{until: make([]time.Time, n), why: make([]error, n), usual: make([]map[Size]time.Duration, n)}
	for i := range p.usual {
		p.usual[i] = map[Size]time.Duration{}
	}
	return p
}

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

// Why returns the reason of a location that is not waited for any longer: ErrLate, or an
// error that reads as the failure for which it isn't counted on, and is ErrLate as well.
func (p *Pace) Why(i int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if why := p.why[i]; why != nil && p.until[i].After(time.Now()) {
		return failedBefore{why}
	}
	return ErrLate
}

// failedBefore is a failure of a location that was asked again since, and has not answered.
type failedBefore struct{ error }

func (f failedBefore) Unwrap() error { return f.error }

// Is has the location count as one that may answer yet.
func (f failedBefore) Is(target error) bool { return target == ErrLate }

// Patience returns how long to wait for the answer of one of the given locations
// before something else is tried: several times as long as the slowest of them
// usually takes for a blob of that size.
func (p *Pace) Patience(of map[int]bool, size Size) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	patience := leastPatience
	for i := range of {
		usual, known := p.usual[i][size]
		if !known {
			patience = max(patience, firstPatience)
		}
		patience = max(patience, patienceFactor*usual)
	}
	return min(patience, MostPatience)
}

// Answered enters that a location answered a read after some time, or else its failure
// to.
func (p *Pace) Answered(i int, size Size, took time.Duration, failure error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if failure != nil {
		p.until[i], p.why[i] = time.Now().Add(lateFor), failure
		return
	}
	p.until[i], p.why[i] = time.Time{}, nil
	took = min(took, MostPatience)
	usual, known := p.usual[i][size]
	if !known {
		usual = took
	}
	const weight = 8
	p.usual[i][size] = usual + (took-usual)/weight
}

// Late enters that locations were waited for longer than is usual. Why one of them failed
// a short while ago says more than that.
func (p *Pace) Late(which map[int]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for i := range which {
		if !p.until[i].After(now) {
			p.why[i] = nil
		}
		p.until[i] = now.Add(lateFor)
	}
}
