package quorum

import (
	"context"
	"errors"
	"time"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/pace"
)

// getMost is GetEach for a hedged set.
func (s *Set) getMost(ctx context.Context, name blob.Name, limit int64, accept func(i int, data []byte) error) []Reply {
	type numbered struct {
		index int
		reply Reply
	}
	ctx, cancel := context.WithCancel(ctx)
	replies := make([]Reply, len(s.locations))
	waiting := map[int]bool{}
	arrived := make(chan numbered, len(s.locations))
	for i, location := range s.locations {
		replies[i].Location = location
		waiting[i] = true
		go func() { arrived <- numbered{i, s.getOne(ctx, i, name, limit, accept)} }()
	}
	most := &answers{total: len(s.locations), acknowledged: s.Acknowledged()}
	timer := time.NewTimer(s.patience(name, waiting))
	defer timer.Stop()
	late := s.allLate(waiting)
	for len(waiting) > 0 && !(late && most.enough()) {
		select {
		case got := <-arrived:
			delete(waiting, got.index)
			replies[got.index] = got.reply
			most.add(name, got.reply.Err)
			late = s.allLate(waiting)
		case <-timer.C:
			s.pace.Late(waiting)
			late = true
		case <-ctx.Done():
			late, most.found, most.definite = true, true, most.total
		}
	}
	if len(waiting) == 0 {
		cancel()
		return replies
	}
	for i := range waiting {
		replies[i].Err = s.pace.Why(i)
		if err := ctx.Err(); err != nil {
			replies[i].Err = err
		}
	}
	s.background.Abandon(cancel, func() {
		for range len(waiting) {
			<-arrived
		}
	})
	return replies
}

// patience returns how long to wait for the locations that have not answered. A
// location whose key header can't be read takes no part in the whole command, so
// that is waited for longest.
func (s *Set) patience(name blob.Name, waiting map[int]bool) time.Duration {
	if name.Kind == blob.KindHeader {
		return pace.MostPatience
	}
	return s.pace.Patience(waiting, pace.Small)
}

// allLate reports whether all of the locations are known to be slow or down.
func (s *Set) allLate(waiting map[int]bool) bool {
	for i := range waiting {
		if !s.pace.IsLate(i) {
			return false
		}
	}
	return true
}

// answers counts what locations answered about a blob.
type answers struct {
	total, acknowledged, definite int
	found                         bool
}

// add enters an answer. A manifest that is larger than asked for is a copy as well: who
// reads it then asks for more.
func (a *answers) add(name blob.Name, err error) {
	if blob.Answered(err) {
		a.definite++
	}
	larger := name.Kind == blob.KindManifest && errors.Is(err, blob.ErrTooLarge)
	a.found = a.found || err == nil || larger
}

// enough reports whether the others can be done without: there is a copy, and so
// many have answered that all which took an acknowledged write can't be among the
// others. That there is none, only all together can say.
func (a *answers) enough() bool { return a.found && a.total-a.definite < a.acknowledged }
