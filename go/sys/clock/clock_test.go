package clock

import (
	"testing"
	"time"
)

func TestStep(t *testing.T) {
	for _, c := range []struct {
		offset     time.Duration
		sec, nanos int64
	}{
		{1500 * time.Millisecond, 1, 500_000_000}, {-1500 * time.Millisecond, -2, 500_000_000},
		{-time.Second, -1, 0}, {-1, -1, 999_999_999}, {0, 0, 0},
	} {
		if got := step(c.offset); got.Time.Sec != c.sec || got.Time.Usec != c.nanos {
			t.Errorf("%v: %+v", c.offset, got.Time)
		}
	}
}

func TestSlew(t *testing.T) {
	small := slew(-20*time.Millisecond, 256*time.Second, time.Millisecond)
	if small.Offset != -20_000_000 || small.Constant != 4 || small.Maxerror != 1000 || small.Modes&adjNano == 0 {
		t.Errorf("small: %+v", small)
	}
	if large := slew(2*time.Second, 64*time.Second, 0); large.Modes != adjSingleShot || large.Offset != 2_000_000 {
		t.Errorf("large: %+v", large)
	}
	if got := SlewTime(-10 * time.Second); got != 20_000*time.Second {
		t.Errorf("10 s take %v", got)
	}
	for poll, want := range map[time.Duration]int64{0: 0, 64 * time.Second: 2, 1024 * time.Second: 6, 1 << 62: 10} {
		if got := timeConstant(poll); got != want {
			t.Errorf("%v: %d, want %d", poll, got, want)
		}
	}
}

func TestState(t *testing.T) {
	if _, err := (Machine{}).Synced(); err != nil {
		t.Error(err)
	}
}
