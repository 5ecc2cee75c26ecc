package lease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
	"powercloud.unidatum.com/go/sys/lease/leasetest"
)

// granted is a lease with a name.
type granted struct {
	lease.Times
	name string
}

func grant(name string) *granted {
	return &granted{lease.Times{Duration: 1600 * time.Second, Renew: 800 * time.Second, Rebind: 1400 * time.Second}, name}
}

var errRefused = errors.New("refused")

// servers is a Protocol that plays.
type servers struct{ leasetest.Play[granted] }

func (s *servers) Times(l *granted) lease.Times { return l.Times }

func (s *servers) Acquire(context.Context) (*granted, error) { return s.Exchange("acquire") }

func (s *servers) Extend(_ context.Context, l *granted, age time.Duration) (*granted, error) {
	return s.Exchange(fmt.Sprintf("extend %s of %v", l.name, age))
}

func (s *servers) Check(_ context.Context, l *granted, age time.Duration) (*granted, error) {
	return s.Exchange(fmt.Sprintf("check %s of %v", l.name, age))
}

func (s *servers) Use(before, l *granted) {
	if before != nil {
		s.Record("use " + l.name + " after " + before.name)
		return
	}
	s.Record("use " + l.name)
}

func (s *servers) Lose(l *granted, refusal error) {
	s.Record(fmt.Sprintf("lose %s: %v", l.name, refusal))
}

func (s *servers) Missing(wait time.Duration, err error) {
	s.Record(fmt.Sprintf("missing for %v: %v", wait, err))
}

func (s *servers) NotExtended(l *granted, err error) {
	s.Record(fmt.Sprintf("kept %s: %v", l.name, err))
}

func (s *servers) client() *lease.Client[granted] {
	return &lease.Client[granted]{
		Protocol: s, Refused: errRefused, LongestPause: 3 * time.Second, Moved: s.Moved(), Clock: s.Clock(),
	}
}

func TestClient(t *testing.T) {
	silence := errors.New("silence")
	for name, c := range map[string]struct {
		script []any
		moves  []time.Duration
		want   string
	}{
		"extended": {
			script: []any{grant("a"), grant("b")},
			want:   "0s acquire, use a, 13m20s extend a of 13m20s, use b after a, 26m40s extend b of 13m20s",
		},
		"waits grow to the longest": {
			script: []any{silence, silence, silence, silence},
			want: "0s acquire, missing for 1s: silence, 1s acquire, missing for 2s: silence, " +
				"3s acquire, missing for 3s: silence, 6s acquire, missing for 3s: silence, 9s acquire",
		},
		"looks at once after a move, and waits little again": {
			script: []any{silence, silence, silence, silence},
			moves:  []time.Duration{3500 * time.Millisecond},
			want: "0s acquire, missing for 1s: silence, 1s acquire, missing for 2s: silence, " +
				"3s acquire, missing for 3s: silence, 3.5s acquire, missing for 1s: silence, 4.5s acquire",
		},
		"used until its time is over": {
			script: []any{grant("a"), silence, silence, silence, silence, silence, silence, silence, silence, grant("b")},
			want: "0s acquire, use a, 13m20s extend a of 13m20s, kept a: silence, 18m20s extend a of 18m20s, kept a: silence, " +
				"20m50s extend a of 20m50s, kept a: silence, 22m5s extend a of 22m5s, kept a: silence, " +
				"23m5s extend a of 23m5s, kept a: silence, 24m5s extend a of 24m5s, kept a: silence, " +
				"25m22.5s extend a of 25m22.5s, kept a: silence, 26m22.5s extend a of 26m22.5s, kept a: silence, " +
				"26m40s extend a of 26m40s, use b after a, 40m0s extend b of 13m20s",
		},
		"over without an answer": {
			script: []any{
				&granted{lease.Times{Duration: time.Minute, Renew: time.Minute, Rebind: time.Minute}, "a"}, (*granted)(nil), grant("b"),
			},
			want: "0s acquire, use a, 1m0s extend a of 1m0s, lose a: <nil>, 1m0s acquire, use b, 14m20s extend b of 13m20s",
		},
		"refused": {
			script: []any{grant("a"), fmt.Errorf("by a server: %w", errRefused), grant("b")},
			want: "0s acquire, use a, 13m20s extend a of 13m20s, lose a: by a server: refused, " +
				"13m20s acquire, use b, 26m40s extend b of 13m20s",
		},
		"checked after a move": {
			script: []any{grant("a"), silence, grant("b")},
			moves:  []time.Duration{10 * time.Second, 5 * time.Second},
			want: "0s acquire, use a, 10s check a of 10s, kept a: silence, 15s check a of 15s, use b after a, " +
				"13m35s extend b of 13m20s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &servers{leasetest.Play[granted]{Script: c.script, Moves: c.moves}}
			s.Run(t, s.client(), c.want)
		})
	}
}

// Machines that start together don't ask together: waits differ by a quarter.
func TestWaitsVary(t *testing.T) {
	for jitter, want := range map[float64]string{
		0:   "0s acquire, missing for 1s: silence, 750ms acquire",
		0.5: "0s acquire, missing for 1s: silence, 1s acquire",
		1:   "0s acquire, missing for 1s: silence, 1.25s acquire",
	} {
		s := &servers{leasetest.Play[granted]{Script: []any{errors.New("silence")}}}
		client := s.client()
		client.Clock.Jitter = func() float64 { return jitter }
		s.Run(t, client, want)
	}
}
