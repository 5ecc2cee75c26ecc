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
// pace.ErrLate, as long as the others between them have what a quorum took.
//
// The errors returned are those of the locations, in their order. The last result
// is fn's error, which ends the listing, or ctx's.
func (s *Set) ListEach(ctx context.Context, kind blob.Kind, failed []error, fn func(Group) error) ([]error, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lists := make([]*list, len(s.locations))
	for i, location := range s.locations {
		lists[i] = &list{groups: make(chan []blob.Info, 1), ended: make(chan struct{})}
		if failed != nil && failed[i] != nil {
			lists[i].failed = failed[i]
			close(lists[i].groups)
			continue
		}
		var listCtx context.Context
		listCtx, lists[i].cancel = context.WithCancel(ctx)
		go lists[i].run(listCtx, location, kind)
	}
	failure := func() error {
		for first := range 256 {
			group := Group{First: byte(first), Listed: make([][]blob.Info, len(lists)), Failed: make([]error, len(lists))}
			for i, l := range lists {
				if s.hedged && !l.ready() && s.dispensable(lists, i) && !l.waitFor(ctx, listPatience) {
					l.failed = pace.ErrLate
				}
				group.Listed[i], group.Failed[i] = l.take(byte(first))
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

// dispensable reports whether what a quorum took is at the locations other than the
// one with index i that have not failed.
func (s *Set) dispensable(lists []*list, i int) bool {
	without := 1
	for j, l := range lists {
		if j != i && l.hasFailed() {
			without++
		}
	}
	return without < s.quorum
}

// list is one location's listing under way.
type list struct {
	// cancel ends the listing.
	cancel context.CancelFunc
	// failed says why the location isn't asked, or not waited for, any more.
	failed error
	// groups has what begins with the same byte together, and is closed at the
	// end.
	groups chan []blob.Info
	// ended is closed before groups, and once err is set.
	ended chan struct{}
	err   error
	// ahead is a group that was received and is not due yet.
	ahead []blob.Info
}

// run lists the location.
func (l *list) run(ctx context.Context, location blob.Location, kind blob.Kind) {
	defer close(l.groups)
	defer close(l.ended)
	var group []blob.Info
	send := func() error {
		if len(group) == 0 {
			return nil
		}
		select {
		case l.groups <- group:
			group = nil
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	l.err = location.List(ctx, kind, func(info blob.Info) error {
		if len(group) > 0 && group[0].Name.ID[0] != info.Name.ID[0] {
			if info.Name.ID[0] < group[0].Name.ID[0] {
				return errUnordered
			}
			if err := send(); err != nil {
				return err
			}
		}
		if len(group) == maxGroup {
			return errTooMany
		}
		group = append(group, info)
		return nil
	})
	if l.err == nil {
		l.err = send()
	}
}

// take returns the blobs that begin with a byte, or why the listing ended before
// them.
func (l *list) take(first byte) ([]blob.Info, error) {
	if l.failed != nil {
		return nil, l.failed
	}
	if l.ahead == nil {
		group, ok := <-l.groups
		if !ok {
			return nil, l.err
		}
		l.ahead = group
	}
	if l.ahead[0].Name.ID[0] != first {
		return nil, nil
	}
	group := l.ahead
	l.ahead = nil
	return group, nil
}

// ready reports whether take doesn't wait.
func (l *list) ready() bool { return l.failed != nil || l.ahead != nil || len(l.groups) > 0 }

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
	case group, ok := <-l.groups:
		if ok {
			l.ahead = group
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
	for range l.groups {
	}
	return l.err
}
