package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pace"
)

// maxGroup is how many blobs a location may list whose IDs begin with the same
// byte: more than any honest one has (a PiB of chunks), and few enough that some
// such groups fit into memory.
const maxGroup = 1 << 20

// errUnordered and errTooMany say that a location's listing isn't to be believed.
var (
	errUnordered = errors.New("its listing is out of order")
	errTooMany   = fmt.Errorf("it lists more than %d blobs whose IDs begin with the same byte", maxGroup)
)

// Group is what the locations list of the blobs whose IDs begin with one byte.
type Group struct {
	// First is that byte.
	First byte
	// Listed has what each location lists, in the order given to New.
	Listed [][]blob.Info
	// Marks has the mark of what each location listed, from before it did, or "";
	// see blob.Sections.
	Marks []string
	// Unchanged says of each location that the mark was known, so that it wasn't
	// asked for a list.
	Unchanged []bool
	// Failed says of each location why its listing ended too early to tell, or
	// nil.
	Failed []error
}

// ListEach lists the blobs of a kind at all locations side by side, and calls fn
// for each first byte of an ID in ascending order, also when nothing begins with
// it. It holds a few groups a location in memory. Locations that failed before,
// by their index, are not asked and count as failed; failed may be nil.
//
// If the set is hedged, a location that goes on with nothing for a while fails with
// pace.ErrLate, as long as the others between them have what was acknowledged.
//
// The errors returned are those of the locations, in their order. The last result
// is fn's error, which ends the listing, or ctx's.
func (s *Set) ListEach(ctx context.Context, kind blob.Kind, failed []error, fn func(Group) error) ([]error, error) {
	return s.ListChanged(ctx, kind, failed, nil, fn)
}

// Known reports whether the caller knows what the location with that index listed
// when its blobs whose IDs begin with first had that mark, and doesn't want to be
// told again. It is called from several goroutines at once, some groups ahead.
type Known func(location int, first byte, mark string) bool

// ListChanged is ListEach for a caller that knows what locations have listed before.
func (s *Set) ListChanged(ctx context.Context, kind blob.Kind, failed []error, known Known, fn func(Group) error) ([]error, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists := make([]*list, len(s.locations))
	for i, location := range s.locations {
		lists[i] = &list{sections: make(chan section, 1), ended: make(chan struct{})}
		if failed != nil && failed[i] != nil {
			lists[i].failed = failed[i]
			close(lists[i].sections)
			continue
		}
		var listCtx context.Context
		listCtx, lists[i].cancel = context.WithCancel(ctx)
		if sections, ok := location.(blob.Sections); ok && known != nil {
			go lists[i].runSections(listCtx, sections, kind, func(first byte, mark string) bool { return known(i, first, mark) })
			continue
		}
		go lists[i].run(listCtx, location, kind)
	}
	failure := func() error {
		for first := range 256 {
			group := Group{
				First:     byte(first),
				Listed:    make([][]blob.Info, len(lists)),
				Marks:     make([]string, len(lists)),
				Unchanged: make([]bool, len(lists)),
				Failed:    make([]error, len(lists)),
			}
			for i, l := range lists {
				if s.hedged && !l.ready() && s.dispensable(lists, i) && !l.waitFor(ctx, listPatience) {
					l.failed = pace.ErrLate
				}
				taken, err := l.take(byte(first))
				group.Listed[i], group.Marks[i], group.Unchanged[i], group.Failed[i] = taken.infos, taken.mark, taken.unchanged, err
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := fn(group); err != nil {
				return err
			}
		}
		return nil
	}()
	if failure != nil {
		cancel()
	}
	errs := make([]error, len(lists))
	for i, l := range lists {
		if l.failed != nil {
			errs[i] = l.failed
			if l.cancel != nil { // It was begun.
				s.background.Abandon(l.cancel, func() { _ = l.end() })
			}
			continue
		}
		errs[i] = l.end()
	}
	if failure == nil {
		failure = ctx.Err()
	}
	return errs, failure
}

// listPatience is how long a listing may go on with nothing. The first page of a
// large bucket takes a while.
const listPatience = 4 * pace.MostPatience

// dispensable reports whether what was acknowledged is at the locations other than the
// one with index i that have not failed.
func (s *Set) dispensable(lists []*list, i int) bool {
	without := 1
	for j, l := range lists {
		if j != i && l.hasFailed() {
			without++
		}
	}
	return without < s.Acknowledged()
}

// list is one location's listing under way.
type list struct {
	// cancel ends the listing.
	cancel context.CancelFunc
	// failed says why the location isn't asked, or not waited for, any more.
	failed error
	// sections has what begins with the same byte together, and is closed at the
	// end.
	sections chan section
	// ended is closed before sections, and once err is set.
	ended chan struct{}
	err   error
	// ahead is a section that was received and is not due yet.
	ahead *section
}

// section is what a location lists of the blobs whose IDs begin with a byte.
type section struct {
	first byte
	infos []blob.Info
	// mark and unchanged are as in Group.
	mark      string
	unchanged bool
}

// add adds a blob that was listed.
func (s *section) add(info blob.Info) error {
	switch {
	case info.Name.ID[0] != s.first:
		return errUnordered
	case len(s.infos) == maxGroup:
		return errTooMany
	}
	s.infos = append(s.infos, info)
	return nil
}

// send passes a section on, unless there is nothing in it.
func (l *list) send(ctx context.Context, s section) error {
	if len(s.infos) == 0 && s.mark == "" {
		return nil
	}
	select {
	case l.sections <- s:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run lists the location.
func (l *list) run(ctx context.Context, location blob.Location, kind blob.Kind) {
	defer close(l.sections)
	defer close(l.ended)
	var current section
	l.err = location.List(ctx, kind, func(info blob.Info) error {
		if first := info.Name.ID[0]; first > current.first {
			if err := l.send(ctx, current); err != nil {
				return err
			}
			current = section{first: first}
		}
		return current.add(info)
	})
	if l.err == nil {
		l.err = l.send(ctx, current)
	}
}

// runSections lists the location's sections whose marks aren't known.
func (l *list) runSections(ctx context.Context, location blob.Sections, kind blob.Kind, known func(first byte, mark string) bool) {
	defer close(l.sections)
	defer close(l.ended)
	for first := range 256 {
		if l.err = l.runSection(ctx, location, kind, byte(first), known); l.err != nil {
			return
		}
	}
}

func (l *list) runSection(ctx context.Context, location blob.Sections, kind blob.Kind, first byte, known func(first byte, mark string) bool) error {
	// Before the listing: what changes meanwhile changes the mark.
	mark, err := location.SectionMark(ctx, kind, first)
	if err != nil {
		return err
	}
	s := section{first: first, mark: mark, unchanged: mark != "" && known(first, mark)}
	if !s.unchanged {
		if err := location.ListSection(ctx, kind, first, s.add); err != nil {
			return err
		}
	}
	return l.send(ctx, s)
}

// take returns the blobs that begin with a byte, or why the listing ended before
// them.
func (l *list) take(first byte) (section, error) {
	if l.failed != nil {
		return section{}, l.failed
	}
	if l.ahead == nil {
		next, ok := <-l.sections
		if !ok {
			return section{}, l.err
		}
		l.ahead = &next
	}
	if l.ahead.first != first {
		return section{}, nil
	}
	taken := *l.ahead
	l.ahead = nil
	return taken, nil
}

// ready reports whether take doesn't wait.
func (l *list) ready() bool { return l.failed != nil || l.ahead != nil || len(l.sections) > 0 }

// hasFailed reports whether the listing is known to have failed.
func (l *list) hasFailed() bool {
	if l.failed != nil {
		return true
	}
	select {
	case <-l.ended:
		return l.err != nil
	default:
		return false
	}
}

// waitFor waits for take to be ready, and reports whether it is in time.
func (l *list) waitFor(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case next, ok := <-l.sections:
		if ok {
			l.ahead = &next
		}
		return true
	case <-ctx.Done():
		return true
	case <-timer.C:
		return false
	}
}

// end waits for the listing to end and returns its error.
func (l *list) end() error {
	for range l.sections {
	}
	return l.err
}
