package clock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Measurement is what one source says of the clock: the time is later than the
// clock by Offset, give or take Error.
type Measurement struct {
	Source        string
	Offset, Error time.Duration
}

func (m Measurement) low() time.Duration  { return m.Offset - m.Error }
func (m Measurement) high() time.Duration { return m.Offset + m.Error }

var (
	// errNobody says that no source has answered.
	errNobody = errors.New("no time server has answered")
	// errDisagreement says that no majority agrees.
	errDisagreement = errors.New("the time servers disagree")
)

// choose finds the time that a majority of the sources agree on: the interval
// that lies in most of theirs (Marzullo's algorithm, RFC 5905 section 11.2.1).
// Of those that agree it takes the one that knows best. One source alone is
// believed, since there is nothing better; two must agree.
func choose(all []Measurement) (best Measurement, wrong []Measurement, err error) {
	if len(all) == 0 {
		return Measurement{}, nil, errNobody
	}
	point, agreeing := densest(all)
	if agreeing <= len(all)/2 {
		return Measurement{}, all, fmt.Errorf("%w: at most %d of %d agree", errDisagreement, agreeing, len(all))
	}
	var right []Measurement
	for _, m := range all {
		if m.low() <= point && point <= m.high() {
			right = append(right, m)
		} else {
			wrong = append(wrong, m)
		}
	}
	best = slices.MinFunc(right, func(a, b Measurement) int { return cmp.Compare(a.Error, b.Error) })
	return best, wrong, nil
}

// densest returns an offset that as many sources as possible allow, and how many
// those are.
func densest(all []Measurement) (point time.Duration, count int) {
	// The densest place begins where one of the intervals begins.
	for _, m := range all {
		n := 0
		for _, o := range all {
			if o.low() <= m.low() && m.low() <= o.high() {
				n++
			}
		}
		if n > count {
			point, count = m.low(), n
		}
	}
	return point, count
}
