package logs

import "slices"

// dumps returns the digests of the panics and crashes that are in the ring.
func (r *ring) dumps() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, s := range r.segments {
		if s.Kind.found() {
			all = append(all, s.Dump)
		}
	}
	return all
}

// position is a reader's next step.
type position struct {
	// segment is the one to be read from.
	segment segment
	// at is where to read, since the ring's beginning.
	at int64
	// lost is how many bytes were given up before they could be read.
	lost int64
}

// find returns where a reader that has come to a place goes on, among the segments that
// it wants. ok is false when there is nothing yet; more is closed when there is.
func (r *ring) find(wanted func(segment) bool, at int64) (p position, ok bool, more <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	// between is what lies between the place and the segment, and isn't wanted.
	var between int64
	for _, s := range r.segments {
		if s.end() <= at {
			continue
		}
		if !wanted(s) {
			between += s.end() - max(s.start, at)
			continue
		}
		if s.start >= at {
			return position{segment: s, at: s.start, lost: s.start - at - between}, true, nil
		}
		return position{segment: s, at: at}, true, nil
	}
	return position{}, false, r.appended
}

// snapshot returns the segments that there are.
func (r *ring) snapshot() []segment {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.segments)
}

// has tells whether a segment is still in the ring.
func (r *ring) has(wanted segment) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.segments, func(s segment) bool { return s.start == wanted.start })
}
