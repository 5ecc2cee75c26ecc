package server

import "sync"

// turns bounds how many requests are answered at a time, in all and of one caller. The
// more turns a caller has, the more must be left when it takes another one: so however
// many it takes, together with a few others, there are some for who has none.
type turns struct {
	max, each int
	// room is how many must be left for each turn that a caller has.
	room int

	mu    sync.Mutex
	all   int
	taken map[string]int
}

func newTurns(max, each int) *turns {
	return &turns{max: max, each: each, room: (max + 2*each - 1) / (2 * each), taken: make(map[string]int)}
}

// take reports whether it is a caller's turn, which is given back then.
func (t *turns) take(caller string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken[caller] >= t.each || t.all+t.taken[caller]*t.room >= t.max {
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
