package quorum

import (
	"context"
	"errors"
	"fmt"

	"powercloud.unidatum.com/go/blob"
)

// Get reads the blob from one location after another until a copy passes
// verify, into buf's memory when its capacity is enough. verify may change the
// bytes in place. Locations are tried in the order given to New, those last that
// could not answer an earlier read.
//
// It returns ErrNotFound only when every location answered that it has no such
// blob. When some failed, by not answering or with a copy that doesn't pass, it
// returns a *ReadError that names each of them, or ctx's error once ctx is done.
func (s *Set) Get(ctx context.Context, name blob.Name, buf []byte, limit int64, verify func([]byte) error) ([]byte, error) {
	errs := make([]error, len(s.locations))
	var corrupt []int
	absent := 0
	for _, i := range s.order() {
		data, err := s.locations[i].Get(ctx, name, buf, limit)
		if ctxErr := ctx.Err(); err != nil && ctxErr != nil {
			return nil, ctxErr
		}
		s.noteAnswer(i, err)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			absent++
			continue
		case err != nil:
			errs[i] = err
			if blob.Unusable(err) {
				corrupt = append(corrupt, i)
			}
			continue
		}
		if errs[i] = verify(data); errs[i] == nil {
			for _, i := range corrupt {
				s.NoteCorrupt(i)
			}
			return data, nil
		}
		corrupt = append(corrupt, i)
		// The next copy can use the memory of this one.
		if cap(data) > cap(buf) {
			buf = data
		}
	}
	if absent == len(s.locations) {
		return nil, blob.ErrNotFound
	}
	return nil, &ReadError{Name: name, Absent: absent, Failures: s.failures(errs)}
}

// order returns the locations' indices in the order to read them.
func (s *Set) order() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := make([]int, 0, len(s.locations))
	for _, down := range []bool{false, true} {
		for i := range s.locations {
			if s.unreachable[i] == down {
				order = append(order, i)
			}
		}
	}
	return order
}

// noteAnswer remembers whether a location answered.
func (s *Set) noteAnswer(i int, err error) {
	answered := err == nil || errors.Is(err, blob.ErrNotFound) || blob.Unusable(err)
	s.mu.Lock()
	s.unreachable[i] = !answered
	s.mu.Unlock()
}

// Reply is one location's answer to GetEach: its copy, which nobody has
// authenticated yet, or the error.
type Reply struct {
	Location blob.Location
	Data     []byte
	Err      error
}

// GetEach reads the blob from every location at once and returns their answers
// in the order given to New.
func (s *Set) GetEach(ctx context.Context, name blob.Name, limit int64) []Reply {
	replies := make([]Reply, len(s.locations))
	errs := s.each(func(i int, location blob.Location) error {
		data, err := location.Get(ctx, name, nil, limit)
		replies[i] = Reply{Location: location, Data: data, Err: err}
		return err
	})
	for i, err := range errs {
		if ctx.Err() == nil {
			s.noteAnswer(i, err)
		}
	}
	return replies
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
		if errors.Is(err, blob.ErrNotFound) || blob.Unusable(err) {
			lacking++
		}
	}
	return lacking
}

// Doubt says why what the set's locations hold may not be the newest, when those
// given could not be read; or nothing, when the others are enough. A write that
// succeeded is at a quorum of locations: so many of them can't all be among the
// ones that were not read.
func (s *Set) Doubt(unread []Failure) string {
	if len(unread) < s.quorum {
		return ""
	}
	total := len(s.locations)
	return fmt.Sprintf("only %d of %d locations could be read, so there may be newer versions than theirs (%s)",
		total-len(unread), total, describe("", unread))
}
