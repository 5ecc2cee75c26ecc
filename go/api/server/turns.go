package server

import "sync"

// turns bounds how many requests are answered at a time, in all and of one caller.
type turns struct {
	max, each int

	mu    sync.Mutex
	all   int
	taken map[string]int
}

func newTurns(max, each int) *turns {
	return &turns{max: max, each: each, taken: make(map[string]int)}
}

// take reports whether it is a caller's turn, which is given back then.
func (t *turns) take(caller string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.all >= t.max || t.taken[caller] >= t.each {
		return false
	}
	t.all++
	t.taken[caller]++
	return true
}

// give gives a turn back.
func (t *turns) give(caller string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all--
	if t.taken[caller]--; t.taken[caller] == 0 {
		delete(t.taken, caller)
	}
}
