package concurrency

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
)

// service is a model of one: it tells when a request of a size, in bytes, that
// begins now is answered, with that many under way, itself included.
type service func(now time.Time, size int64, running int) (answered time.Time, outcome Outcome)

// simulation drives a limiter with as many requests as it lets through, on a
// clock that jumps from answer to answer.
type simulation struct {
	limiter *Limiter
	now     time.Time
	demand  int // the most requests that there are at once
	size    func() int64
	service service

	running []request
	limits  []int // after each answer
}

type request struct {
	permit  *Permit
	size    int64
	ends    time.Time
	outcome Outcome
}

func newSimulation(start, most int, s service) *simulation {
	sim := &simulation{now: time.Unix(1_000_000, 0), demand: 1000, size: func() int64 { return 1000 }, service: s}
	sim.limiter = New(Options{Start: start, Max: most, Now: func() time.Time { return sim.now }})
	return sim
}

// answers runs the simulation for a number of answers.
func (s *simulation) answers(t *testing.T, n int) {
	t.Helper()
	for range n {
		for len(s.running) < min(s.demand, s.limiter.Limit()) {
			permit, err := s.limiter.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := request{permit: permit, size: s.size()}
			r.ends, r.outcome = s.service(s.now, r.size, len(s.running)+1)
			s.running = append(s.running, r)
		}
		slices.SortStableFunc(s.running, func(a, b request) int { return a.ends.Compare(b.ends) })
		done := s.running[0]
		s.running = s.running[1:]
		s.now = done.ends
		done.permit.Release(0, done.size, done.outcome)
		s.limits = append(s.limits, s.limiter.Limit())
	}
}

// tail returns the least and the greatest of the last n limits.
func (s *simulation) tail(n int) (least, greatest int) {
	last := s.limits[len(s.limits)-n:]
	return slices.Min(last), slices.Max(last)
}

func within(t *testing.T, s *simulation, n, low, high int) {
	t.Helper()
	if least, greatest := s.tail(n); least < low || greatest > high {
		t.Errorf("the limit settles between %d and %d, want %d to %d", least, greatest, low, high)
	}
}

// far is a service that answers anything after about 30 ms, most of the time.
func far(seed uint64) service {
	random := rand.New(rand.NewPCG(seed, 1))
	return func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		latency := 30*time.Millisecond + time.Duration(random.IntN(10_000))*time.Microsecond
		if random.IntN(20) == 0 {
			latency *= 8 // real services have such a tail
		}
		return now.Add(latency), Answered
	}
}

// thin is a line of so many bytes a second, 30 ms long, on which requests queue.
func thin(bytesPerSecond float64) service {
	var free time.Time
	return func(now time.Time, size int64, _ int) (time.Time, Outcome) {
		if free.Before(now) {
			free = now
		}
		free = free.Add(time.Duration(float64(size) / bytesPerSecond * float64(time.Second)))
		return free.Add(30 * time.Millisecond), Answered
	}
}

// slots is a service that works on so many requests at once, 5 ms each.
func slots(n int) service {
	free := make([]time.Time, n)
	return func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		slices.SortFunc(free, time.Time.Compare)
		if free[0].Before(now) {
			free[0] = now
		}
		free[0] = free[0].Add(5 * time.Millisecond)
		return free[0], Answered
	}
}

func TestFarServiceIsAskedMuchAtOnce(t *testing.T) {
	for seed := range uint64(20) {
		s := newSimulation(8, 64, far(seed))
		s.answers(t, 500)
		if s.limits[499] != 64 {
			t.Errorf("seed %d: after 500 answers the limit is %d, not 64", seed, s.limits[499])
		}
		s.answers(t, 5000)
		within(t, s, 5000, 48, 64)
	}
}

func TestSlowStartDoubles(t *testing.T) {
	s := newSimulation(8, 64, func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		return now.Add(30 * time.Millisecond), Answered
	})
	began := s.now
	for s.limiter.Limit() < 64 && len(s.limits) < 1000 {
		s.answers(t, 1)
	}
	// Each doubling waits for the answers to requests that began since the one
	// before: two round trips.
	if took := s.now.Sub(began); took > 6*30*time.Millisecond {
		t.Errorf("it took %v and %d answers to get from 8 to 64", took, len(s.limits))
	}
}

func TestBusyServiceIsNotFlooded(t *testing.T) {
	s := newSimulation(8, 64, slots(2))
	s.answers(t, 2000)
	within(t, s, 1500, 8, 20)

	s = newSimulation(4, 64, slots(16))
	s.answers(t, 3000)
	// 16 fill it. Beyond twice as many, requests wait longer than they are
	// worked on, which shows in steps of 5 ms.
	within(t, s, 2000, 16, 48)
}

func TestThinLine(t *testing.T) {
	// 4 MiB take 400 ms on it: one request at a time fills it.
	s := newSimulation(8, 64, thin(10<<20))
	s.size = func() int64 { return 4 << 20 }
	s.answers(t, 1000)
	within(t, s, 800, 8, 20)
}

func TestSizesAreNotCompared(t *testing.T) {
	// Every other request is large and takes thirty times as long. Nobody waits
	// for anybody.
	s := newSimulation(8, 64, func(now time.Time, size int64, _ int) (time.Time, Outcome) {
		return now.Add(30*time.Millisecond + time.Duration(size)*200*time.Nanosecond), Answered
	})
	n := 0
	s.size = func() int64 {
		if n++; n%2 == 0 {
			return 4 << 20
		}
		return 500
	}
	s.answers(t, 1000)
	within(t, s, 500, 64, 64)
}

func TestOverloadHalves(t *testing.T) {
	s := newSimulation(8, 64, func(now time.Time, _ int64, running int) (time.Time, Outcome) {
		if running > 20 {
			return now.Add(time.Millisecond), Overloaded
		}
		return now.Add(30 * time.Millisecond), Answered
	})
	s.answers(t, 3000)
	within(t, s, 2000, 10, 24)

	s = newSimulation(8, 64, func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		return now.Add(time.Millisecond), Overloaded
	})
	s.answers(t, 100)
	within(t, s, 50, 1, 1)
	s.service = far(1)
	s.answers(t, 2000)
	within(t, s, 100, 32, 64)
}

func TestOneOverloadCountsOnce(t *testing.T) {
	l := New(Options{Start: 16, Max: 64})
	var permits []*Permit
	for range 16 {
		permit, err := l.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		permits = append(permits, permit)
	}
	for _, permit := range permits {
		permit.Release(0, 0, Overloaded)
	}
	if limit := l.Limit(); limit != 8 {
		t.Errorf("16 refusals of requests sent together lead to a limit of %d, not 8", limit)
	}
}

func TestWithoutDemandNothingIsLearned(t *testing.T) {
	s := newSimulation(8, 64, far(1))
	s.demand = 5
	s.answers(t, 1000)
	within(t, s, 1000, 8, 8)
	s.demand = 20
	s.answers(t, 2000)
	if _, greatest := s.tail(1000); greatest > 32 {
		t.Errorf("the limit is %d for a demand of 20", greatest)
	}
}

func TestServiceThatHasBecomeSlow(t *testing.T) {
	s := newSimulation(8, 64, far(1))
	s.answers(t, 1000)
	s.service = func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		return now.Add(200 * time.Millisecond), Answered
	}
	s.answers(t, 200)
	if least, _ := s.tail(100); least != 8 {
		t.Errorf("the limit doesn't fall below %d though latency has grown sixfold", least)
	}
	// It isn't the requests' number that makes it slow, so it grows again.
	s.answers(t, 3000)
	within(t, s, 100, 64, 64)
}

func TestUnknownTellsNothing(t *testing.T) {
	s := newSimulation(8, 64, func(now time.Time, _ int64, _ int) (time.Time, Outcome) {
		return now.Add(time.Hour), Unknown
	})
	s.answers(t, 500)
	within(t, s, 500, 8, 8)
}

func TestAcquireWaitsItsTurn(t *testing.T) {
	l := New(Options{Start: 1, Max: 1})
	first, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	order := make(chan int, 3)
	var wait sync.WaitGroup
	for i := range 3 {
		wait.Go(func() {
			permit, err := l.Acquire(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			order <- i
			permit.Release(0, 0, Answered)
		})
		waitFor(t, l, i+1)
	}
	first.Release(0, 0, Answered)
	wait.Wait()
	for i := range 3 {
		if got := <-order; got != i {
			t.Errorf("number %d came when it was number %d's turn", got, i)
		}
	}
}

// waitFor returns once n requests wait.
func waitFor(t *testing.T, l *Limiter, n int) {
	for {
		l.mu.Lock()
		waiting := len(l.waiting)
		l.mu.Unlock()
		if waiting >= n {
			return
		}
		runtime.Gosched()
	}
}

func TestAcquireGivesUp(t *testing.T) {
	l := New(Options{Start: 1, Max: 1})
	held, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error)
	go func() {
		_, err := l.Acquire(ctx)
		result <- err
	}()
	waitFor(t, l, 1)
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire returns %v once it is cancelled", err)
	}
	if _, err := l.Acquire(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Acquire returns %v when it was cancelled before", err)
	}
	held.Release(0, 0, Answered)
	// The one that gave up took nobody's turn.
	next, err := l.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	next.Release(0, 0, Answered)
	if l.running != 0 || len(l.waiting) != 0 {
		t.Errorf("%d are under way and %d wait", l.running, len(l.waiting))
	}
}

// TestManyGiveUp cancels requests at the moment when it is their turn.
func TestManyGiveUp(t *testing.T) {
	l := New(Options{Start: 3, Max: 3})
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if permit, err := l.Acquire(ctx); err == nil {
					permit.Release(0, 1, Answered)
				}
			}
		})
	}
	wait.Wait()
	if l.running != 0 || len(l.waiting) != 0 {
		t.Errorf("%d are under way and %d wait", l.running, len(l.waiting))
	}
}
