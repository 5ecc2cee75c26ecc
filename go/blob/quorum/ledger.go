package quorum

import "slices"

// places says for each location of a set whether it took part in something.
type places []bool

func succeeded(errs []error) places {
	took := make(places, len(errs))
	for i, err := range errs {
		took[i] = err == nil
	}
	return took
}

func (p places) count() int {
	n := 0
	for _, in := range p {
		if in {
			n++
		}
	}
	return n
}

// ledger remembers which locations took the writes that no flush has covered
// yet. It keeps one entry for each combination of locations, not one a write:
// there are few.
type ledger struct {
	// last counts the writes.
	last    uint64
	entries []entry
}

type entry struct {
	took places
	// last is the number of the latest write that these locations took.
	last uint64
}

// add enters a write that these locations took.
func (l *ledger) add(took places) {
	l.last++
	for i := range l.entries {
		if slices.Equal(l.entries[i].took, took) {
			l.entries[i].last = l.last
			return
		}
	}
	l.entries = append(l.entries, entry{took, l.last})
}

// durable returns at how many locations the write with the fewest copies is
// durable once these locations have flushed. Writes that came after the flush
// began are counted too, which can only make it stricter.
func (l *ledger) durable(flushed places) int {
	least := flushed.count()
	for _, e := range l.entries {
		n := 0
		for i, took := range e.took {
			if took && flushed[i] {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

// settle drops what a successful flush has covered: the writes up to that number.
func (l *ledger) settle(covered uint64) {
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.last <= covered })
}
