package backoff

import (
	"slices"
	"testing"
	"time"
)

func TestWaitsGrowAndAreForgiven(t *testing.T) {
	b := New(Policy{})
	var got []time.Duration
	for range 9 {
		got = append(got, b.Ended(time.Second))
	}
	want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60}
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(got, want) {
		t.Errorf("waits %v, want %v", got, want)
	}
	if b.Failures() != 9 {
		t.Errorf("%d failures", b.Failures())
	}
	if wait := b.Ended(10 * time.Minute); wait != time.Second || b.Failures() != 1 {
		t.Errorf("after a good run it waits %v, having counted %d failures", wait, b.Failures())
	}
}

func TestManyFailuresDontOverflow(t *testing.T) {
	b := New(Policy{Least: 3 * time.Second, Most: 1 << 62})
	for range 200 {
		if wait := b.Ended(0); wait <= 0 {
			t.Fatalf("after %d failures the wait is %v", b.Failures(), wait)
		}
	}
}

func TestLeastAboveMost(t *testing.T) {
	if wait := New(Policy{Least: time.Hour, Most: time.Minute}).Ended(0); wait != time.Hour {
		t.Errorf("wait %v", wait)
	}
}
