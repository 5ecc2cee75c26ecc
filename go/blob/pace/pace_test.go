package pace_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"powercloud.unidatum.com/go/blob/pace"
)

// TestPatience: it follows the slowest of those that are waited for, and what small
// blobs take says nothing about large ones.
func TestPatience(t *testing.T) {
	p := pace.New(3)
	for range 100 {
		p.Answered(0, pace.Small, time.Millisecond, nil)
		p.Answered(0, pace.Large, 600*time.Millisecond, nil)
		p.Answered(1, pace.Small, 100*time.Millisecond, nil)
		p.Answered(2, pace.Large, time.Hour, nil)
	}
	for _, c := range []struct {
		of   []int
		size pace.Size
		want time.Duration
	}{
		{[]int{0}, pace.Small, 200 * time.Millisecond},
		{[]int{0}, pace.Large, 3 * time.Second},
		{[]int{0, 1}, pace.Small, 500 * time.Millisecond},
		{[]int{1}, pace.Large, time.Second}, // not known yet
		{[]int{0, 2}, pace.Large, pace.MostPatience},
	} {
		of := map[int]bool{}
		for _, i := range c.of {
			of[i] = true
		}
		got := p.Patience(of, c.size)
		if difference := (got - c.want).Abs(); difference > c.want/100 {
			t.Errorf("the patience with %v, large: %v, is %v, want %v", c.of, c.size, got, c.want)
		}
	}
}

var errDown = errors.New("it is down")

// TestOrder: who was late or down is asked last for a while.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.New(3)
		order := func(want ...int) {
			t.Helper()
			if got := p.Order(); !slices.Equal(got, want) {
				t.Errorf("the order is %v, want %v", got, want)
			}
		}
		order(0, 1, 2)
		p.Late(map[int]bool{0: true})
		p.Answered(1, pace.Small, time.Second, errDown)
		order(2, 0, 1)
		if !p.IsLate(0) || p.IsLate(2) {
			t.Error("it isn't known who is late")
		}
		// A failure says more than that the location was late.
		p.Late(map[int]bool{1: true})
		for i, want := range []error{pace.ErrLate, errDown, pace.ErrLate} {
			if got := p.Why(i); got.Error() != want.Error() || !errors.Is(got, want) || !errors.Is(got, pace.ErrLate) {
				t.Errorf("location %d isn't waited for as %q, want %q", i, got, want)
			}
		}
		p.Answered(0, pace.Small, time.Second, nil)
		order(0, 2, 1)
		time.Sleep(time.Minute)
		order(0, 1, 2)
		p.Late(map[int]bool{1: true})
		if got := p.Why(1); got != pace.ErrLate {
			t.Errorf("a location that is late now isn't waited for as %q", got)
		}
	})
}
