// Package ledger keeps account of which of several places took writes, until a
// flush has made them durable at enough of them.
package ledger

import "slices"

// Places says for each place of a set whether it took part in something.
type Places []bool

// Succeeded returns the places without an error.
func Succeeded(errs []error) Places {
	took := make(Places, len(errs))
	for i, err := range errs {
		took[i] = err == nil
	}
	return took
}

// Count returns how many places took part.
func (p Places) Count() int {
	n := 0
	for _, in := range p {
		if in {
			n++
		}
	}
	return n
}

// Ledger remembers which places took the writes that no flush has covered
// yet. It keeps one entry for each combination of places, not one a write:
// there are few. The zero Ledger is empty. It is not safe for concurrent use.
type Ledger struct {
	// last counts the writes.
	last    uint64
	entries []entry
}

type entry struct {
	took Places
	// last is the number of the latest write that these places took.
	last uint64
}

// Last returns the number of the latest write.
func (l *Ledger) Last() uint64 { return l.last }

// Add enters a write that these places took.
func (l *Ledger) Add(took Places) {
	l.last++
	for i := range l.entries {
		if slices.Equal(l.entries[i].took, took) {
			l.entries[i].last = l.last
			return
		}
	}
	l.entries = append(l.entries, entry{took, l.last})
}

// Durable returns at how many places the write with the fewest copies is
// durable once these places have flushed. Writes that came after the flush
// began are counted too, which can only make it stricter.
func (l *Ledger) Durable(flushed Places) int {
	least := flushed.Count()
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

// Settle drops what a successful flush has covered: the writes up to that number.
func (l *Ledger) Settle(covered uint64) {
	l.entries = slices.DeleteFunc(l.entries, func(e entry) bool { return e.last <= covered })
}
