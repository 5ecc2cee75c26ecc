package quorum

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pace"
)

// Get reads the blob from one location after another until use returns nil for a
// copy. use may change the bytes in place, and keeps nothing of them. Locations are
// tried in the order given to New, those last that could not answer an earlier read
// or were slow to. When one takes much longer than it usually does, the next one is
// asked as well, and the first authentic copy counts.
//
// It returns ErrNotFound only when every location answered that it has no such
// blob. When some failed, by not answering or with a copy that doesn't pass, it
// returns a *ReadError that names each of them, or ctx's error once ctx is done.
func (s *Set) Get(ctx context.Context, name blob.Name, limit int64, use func([]byte) error) error {
	r := &reading{set: s, name: name, limit: limit, order: s.pace.Order(), errs: make([]error, len(s.locations))}
	if len(s.locations) == 1 {
		r.enter(r.get(ctx, 0, use))
		return r.result(ctx)
	}
	r.offers, r.answers = make(chan offer), make(chan answer, len(s.locations))
	ctx, cancel := context.WithCancel(ctx)
	defer r.abandon(cancel)
	return r.run(ctx, use)
}

// reading is a Get at work.
type reading struct {
	set     *Set
	name    blob.Name
	limit   int64
	order   []int
	asked   int
	waiting map[int]bool
	// offers are copies that are to be judged, one at a time.
	offers  chan offer
	answers chan answer

	found   bool
	absent  int
	errs    []error
	corrupt []int
}

// offer is a copy whose reader says whether it will do.
type offer struct {
	data    []byte
	verdict chan<- error
}

// answer is what became of asking one location.
type answer struct {
	index int
	err   error
	// refused says that err is the verdict on the location's copy.
	refused bool
	took    time.Duration
}

// errServed is the verdict on a copy that comes after one that was good.
var errServed = errors.New("another copy was used")

// run asks locations until one has served, or none is left.
func (r *reading) run(ctx context.Context, use func([]byte) error) error {
	r.waiting = map[int]bool{}
	r.ask(ctx)
	timer := time.NewTimer(r.set.pace.Patience(r.waiting, pace.SizeOf(r.limit)))
	defer timer.Stop()
	for len(r.waiting) > 0 && !r.found {
		select {
		case o := <-r.offers:
			o.verdict <- use(o.data)
		case a := <-r.answers:
			delete(r.waiting, a.index)
			r.enter(a)
			if !r.found && len(r.waiting) == 0 {
				r.ask(ctx)
			}
			timer.Reset(r.set.pace.Patience(r.waiting, pace.SizeOf(r.limit)))
		case <-timer.C:
			r.set.pace.Late(r.waiting)
			r.ask(ctx)
			timer.Reset(r.set.pace.Patience(r.waiting, pace.SizeOf(r.limit)))
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return r.result(ctx)
}

// ask asks one more location, if there is one.
func (r *reading) ask(ctx context.Context) {
	if r.asked == len(r.order) {
		return
	}
	i := r.order[r.asked]
	r.asked++
	r.waiting[i] = true
	go func() {
		r.answers <- r.get(ctx, i, func(data []byte) error {
			verdict := make(chan error, 1)
			select {
			case r.offers <- offer{data, verdict}:
				return <-verdict
			case <-ctx.Done():
				return errServed
			}
		})
	}()
}

// get asks one location.
func (r *reading) get(ctx context.Context, i int, use func([]byte) error) answer {
	a := answer{index: i}
	start := time.Now()
	memory := r.set.memory.Take(int(r.limit))
	defer r.set.memory.Give(memory)
	_, a.err = blob.GetAccepted(ctx, r.set.locations[i], r.name, memory, r.limit, refusing(use))
	a.took = time.Since(start)
	a.refused = errors.As(a.err, &refusal{})
	return a
}

// enter enters what became of asking a location.
func (r *reading) enter(a answer) {
	failure := unanswered(a.err)
	if a.refused {
		// What the verdict was says nothing about whether the location answered.
		failure = nil
	}
	if !errors.Is(a.err, context.Canceled) {
		r.set.pace.Answered(a.index, pace.SizeOf(r.limit), a.took, failure)
	}
	switch {
	case a.err == nil:
		r.found = true
	case !a.refused && errors.Is(a.err, blob.ErrNotFound):
		r.absent++
	default:
		r.errs[a.index] = a.err
		if a.refused || blob.Unusable(a.err) {
			r.corrupt = append(r.corrupt, a.index)
		}
	}
}

// result returns what Get returns.
func (r *reading) result(ctx context.Context) error {
	switch err := ctx.Err(); {
	case r.found:
		for _, i := range r.corrupt {
			r.set.NoteCorrupt(i)
		}
		return nil
	case err != nil:
		return err
	case r.absent == len(r.set.locations):
		return blob.ErrNotFound
	}
	return &ReadError{Name: r.name, Absent: r.absent, Failures: blob.FailuresOf(r.set.locations, r.errs)}
}

// abandon ends what locations are still being asked. They may take their time to
// notice.
func (r *reading) abandon(cancel context.CancelFunc) {
	if len(r.waiting) == 0 {
		cancel()
		return
	}
	r.set.background.Abandon(cancel, func() {
		for range len(r.waiting) {
			<-r.answers
		}
	})
}

// Reply is one location's answer to GetEach: its copy, which nobody has
// authenticated yet, or the error.
type Reply struct {
	Location blob.Location
	Data     []byte
	Err      error
}

// GetEach reads the blob from every location at once and returns their answers
// in the order given to New. If the set is hedged, the answer of a location that
// stalls is pace.ErrLate, and reads as its failure a short while ago if there was one; of
// a manifest, those that are larger than the limit count as copies then.
func (s *Set) GetEach(ctx context.Context, name blob.Name, limit int64) []Reply {
	return s.getEach(ctx, name, limit, nil)
}

// GetOpened is GetEach for a reader that can tell whether a copy is authentic: open
// returns what is in it, or an error. It is called by several goroutines, for a
// location that may have several answers more than once; see blob.Chooser. Besides
// the answers it returns what open made of each, and the zero value for those with an
// error. A location that has nothing authentic answers with open's error, which is
// then blob.ErrDamaged as well.
func GetOpened[T any](ctx context.Context, s *Set, name blob.Name, limit int64, open func([]byte) (T, error)) ([]Reply, []T) {
	opened := make([]T, len(s.locations))
	replies := s.getEach(ctx, name, limit, func(i int, data []byte) (err error) {
		opened[i], err = open(data)
		return err
	})
	contents := make([]T, len(replies))
	for i, reply := range replies {
		// Of a location that isn't waited for, opened may still be written.
		if reply.Err == nil {
			contents[i] = opened[i]
		}
	}
	return replies, contents
}

// getEach is GetEach; accept, unless it is nil, returns why a copy of the location with
// index i won't do.
func (s *Set) getEach(ctx context.Context, name blob.Name, limit int64, accept func(i int, data []byte) error) []Reply {
	if s.hedged && len(s.locations) > 1 {
		return s.getMost(ctx, name, limit, accept)
	}
	replies := make([]Reply, len(s.locations))
	s.each(func(i int, _ blob.Location) error {
		replies[i] = s.getOne(ctx, i, name, limit, accept)
		return nil
	})
	return replies
}

// getOne asks one location.
func (s *Set) getOne(ctx context.Context, i int, name blob.Name, limit int64, accept func(i int, data []byte) error) Reply {
	location := s.locations[i]
	reply := Reply{Location: location}
	start := time.Now()
	if accept == nil {
		reply.Data, reply.Err = location.Get(ctx, name, nil, limit)
	} else {
		reply.Data, reply.Err = blob.GetAccepted(ctx, location, name, nil, limit, refusing(func(data []byte) error { return accept(i, data) }))
	}
	if ctx.Err() == nil {
		s.pace.Answered(i, pace.Small, time.Since(start), unanswered(reply.Err))
	}
	return reply
}

// unanswered returns an error if it says that a location didn't answer.
func unanswered(err error) error {
	if blob.Answered(err) {
		return nil
	}
	return err
}

// AnsweredAtQuorum returns nil if as many locations answered as a write needs, or
// the error that the write would end with; or ctx's once it is done.
func (s *Set) AnsweredAtQuorum(ctx context.Context, replies []Reply) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	errs := make([]error, len(replies))
	answered := 0
	for i, reply := range replies {
		if blob.Answered(reply.Err) {
			answered++
		} else {
			errs[i] = reply.Err
		}
	}
	return s.enough(ctx, answered, errs)
}

// refusal is an error of accept.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Is has a refused copy count as a damaged one.
func (r refusal) Is(target error) bool { return target == blob.ErrDamaged }

// refusing returns accept with its errors as refusals, so that they are told from what
// else a location returns.
func refusing(accept func([]byte) error) func([]byte) error {
	return func(data []byte) error {
		if err := accept(data); err != nil {
			return refusal{err}
		}
		return nil
	}
}

// Lacking asks every location at once and counts those that answer that they have
// no blob of that name and size.
func (s *Set) Lacking(ctx context.Context, name blob.Name, size int64) int {
	lacking := 0
	for _, err := range s.each(func(_ int, location blob.Location) error {
		info, err := location.Stat(ctx, name)
		if err == nil && info.Size != size {
			err = blob.ErrDamaged
		}
		return err
	}) {
		if err != nil && blob.Answered(err) {
			lacking++
		}
	}
	return lacking
}

// doubtful is Doubt for a set of which enough locations answered: some of them may be in
// doubt of what they have themselves.
func (s *Set) doubtful(unread []Failure) string {
	doubts := slices.Clone(unread)
	for _, location := range s.locations {
		isUnread := func(u Failure) bool { return u.Location == location }
		if d, ok := location.(blob.Doubter); ok && d.Doubt() != "" && !slices.ContainsFunc(unread, isUnread) {
			doubts = append(doubts, Failure{Location: location, Err: errors.New(d.Doubt())})
		}
	}
	if len(doubts) == len(unread) || len(doubts) < s.Acknowledged() {
		return ""
	}
	return blob.Failures(doubts).Text()
}

// Doubt says why what the set's locations hold may not be the newest, when those
// given could not be read; or nothing, when the others are enough. A write that
// succeeded is at as many locations as Acknowledged tells: so many of them can't all be
// among the ones that were not read.
func (s *Set) Doubt(unread []Failure) string {
	if len(unread) < s.Acknowledged() {
		return s.doubtful(unread)
	}
	total := len(s.locations)
	return fmt.Sprintf("only %d of %d locations could be read, so there may be newer versions than theirs (%s)",
		total-len(unread), total, blob.Failures(unread).Text())
}
