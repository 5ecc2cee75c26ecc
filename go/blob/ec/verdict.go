package ec

import (
	"errors"
	"fmt"
	"slices"

	"powercloud.unidatum.com/go/blob"
)

// doubt returns an error when a version newer than the given one was seen, can't be
// put together, and may have been acknowledged: what is missing of it may be on
// parts that can't be read. A chunk has one version only.
func (t *tally) doubt(than *version) error {
	if t.isChunk() {
		return nil
	}
	if large := t.count(tooLarge); large > 0 && large+t.count(unreachable)+t.count(unusable) >= t.quorum() {
		return blob.ErrTooLarge
	}
	for _, v := range t.versions {
		if 0 < v.count && v.count < t.data && t.possible(v) && newer(v.sequence, v.id, than.sequence, than.id) {
			return t.failure(fmt.Sprintf("%d of the %d shards that are needed of the newest version can be read", v.count, t.data))
		}
	}
	return nil
}

// mayChange reports whether another look may show more: the parts have versions of
// a blob that may be replaced just now.
func (t *tally) mayChange() bool {
	return !t.isChunk() && len(t.versions) > 0 && t.count(unreachable) == 0
}

// verdict returns why no version can be put together, once all parts were asked.
func (t *tally) verdict() error {
	most := 0
	for _, v := range t.versions {
		most = max(most, v.count)
	}
	lost, large := t.count(unreachable), t.count(tooLarge)
	left := t.similar() + t.count(unusable)
	held := t.count(holding) + t.count(unusable)
	keeps := t.keeps() && left > 0
	failure := t.failure(fmt.Sprintf("%d of the %d shards that are needed can be read", most, t.data))
	switch {
	case large > 0 && large+lost+left >= t.quorum():
		return blob.ErrTooLarge
	case lost > 0 && (lost+held >= t.quorum() || keeps):
		return failure
	case left >= t.quorum() || keeps:
		if err := t.layoutError(); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", blob.ErrDamaged, failure)
	}
	return blob.ErrNotFound
}

// similar returns how many parts hold what may once have been shards of one version:
// something with the same sequence and size, whatever else is in it.
func (t *tally) similar() int {
	type key struct {
		sequence uint64
		size     int64
	}
	most, parts := 0, map[key]int{}
	for i := range t.answers {
		for _, r := range slices.Concat(t.answers[i].records, t.answers[i].dropped()) {
			k := key{r.sequence, r.size}
			parts[k]++
			most = max(most, parts[k])
		}
	}
	return most
}

// dropped returns the altered records of a part that has others besides.
func (a *answer) dropped() []record {
	if a.state == holding {
		return a.altered
	}
	return nil
}

// failure returns an error with that message and the parts that could not be read.
func (t *tally) failure(message string) error {
	failure := &PartsError{Message: message}
	for i := range t.answers {
		if a := &t.answers[i]; a.err != nil {
			failure.Failures = append(failure.Failures, blob.Failure{Location: t.parts[i], Err: a.err})
		}
	}
	return failure
}

// keeps reports whether shards that are too few to put a blob together count as a
// damaged blob, rather than as what an interrupted write has left. Nobody may take
// the place of a key header for empty; and of a chunk no harm is done, as it is
// replaced by the next write.
func (t *tally) keeps() bool {
	return t.name.Kind == blob.KindHeader || t.isChunk()
}

// layoutError returns an error that says so when the parts were written as a set
// with another K or number of parts.
func (t *tally) layoutError() error {
	n := 0
	var err error
	for i := range t.answers {
		if errors.Is(t.answers[i].err, errLayout) {
			n++
			err = t.answers[i].err
		}
	}
	if n < t.agreement() {
		return nil
	}
	return fmt.Errorf("%w: its parts were written with another K or number of parts (%w)", blob.ErrDamaged, err)
}
