package lease_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
)

func TestWait(t *testing.T) {
	hours := lease.Times{Renew: 4 * time.Hour, Rebind: 7 * time.Hour, Duration: 8 * time.Hour}
	short := lease.Times{Renew: 8 * time.Second, Rebind: 14 * time.Second, Duration: 16 * time.Second}
	for name, c := range map[string]struct {
		times     lease.Times
		age, want time.Duration
	}{
		"new: until T1":                      {hours, 0, 4 * time.Hour},
		"just before T1":                     {hours, 4*time.Hour - 1, 1},
		"from T1: half of what's left to T2": {hours, 4 * time.Hour, 90 * time.Minute},
		"near T2: a minute":                  {hours, 7*time.Hour - 30*time.Second, time.Minute},
		"from T2: half of what's left":       {hours, 7 * time.Hour, 30 * time.Minute},
		"near the end: a minute":             {hours, 8*time.Hour - 90*time.Second, time.Minute},
		"never past the end":                 {hours, 8*time.Hour - 20*time.Second, 20 * time.Second},
		"at the end":                         {hours, 8 * time.Hour, 0},
		"a short lease from T1":              {short, 8 * time.Second, 3 * time.Second},
		"a short lease near T2":              {short, 13 * time.Second, time.Second},
	} {
		if got := c.times.Wait(c.age); got != c.want {
			t.Errorf("%s: at %v it waits %v, want %v", name, c.age, got, c.want)
		}
	}
}

// A lease that nobody extends is asked for again and again, and ends when it
// should: the waits neither stand still nor lead past the end.
func TestWaitsLeadToTheEnd(t *testing.T) {
	for _, times := range []lease.Times{
		{Renew: 5 * time.Second, Rebind: 5 * time.Second, Duration: 10 * time.Second},
		{Renew: time.Hour, Rebind: time.Hour, Duration: 2 * time.Hour},
		{Renew: 1 << 31 * time.Second, Rebind: 7 << 29 * time.Second, Duration: (1<<32 - 1) * time.Second},
	} {
		age, waits := time.Duration(0), 0
		for ; age < times.Duration && waits < 200; waits++ {
			wait := times.Wait(age)
			if wait <= 0 {
				t.Fatalf("%+v: at %v it waits %v", times, age, wait)
			}
			age += wait
		}
		if age != times.Duration || waits < 3 {
			t.Errorf("%+v: after %d waits it is %v", times, waits, age)
		}
	}
}

func TestExtend(t *testing.T) {
	times := lease.Times{Renew: 4 * time.Hour, Rebind: 7 * time.Hour, Duration: 8 * time.Hour}
	var asked []string
	record := func(whom string) lease.Ask[int] {
		return func(ctx context.Context, l *int) (*int, error) {
			deadline, ok := ctx.Deadline()
			if !ok {
				return nil, errors.New("the exchange may go on for ever")
			}
			asked = append(asked, fmt.Sprintf("%s for %v", whom, time.Until(deadline).Round(time.Minute)))
			return l, nil
		}
	}
	for _, age := range []time.Duration{4 * time.Hour, 7*time.Hour - 10*time.Minute, 7 * time.Hour, 8*time.Hour - 5*time.Minute} {
		l := new(int)
		if got, err := lease.Extend(t.Context(), times, age, l, record("renew"), record("rebind")); got != l || err != nil {
			t.Errorf("at %v: %v, %v", age, got, err)
		}
	}
	if got, err := lease.Extend(t.Context(), times, times.Duration, new(int), record("renew"), record("rebind")); got != nil || err != nil {
		t.Errorf("when it is over: %v, %v", got, err)
	}
	want := []string{"renew for 3h0m0s", "renew for 10m0s", "rebind for 1h0m0s", "rebind for 5m0s"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestTell(t *testing.T) {
	lies := func(n int) (all []string) {
		for i := range n {
			all = append(all, fmt.Sprintf("lie %d", i))
		}
		return all
	}
	for name, c := range map[string]struct{ before, now, want []string }{
		"nothing":        {},
		"the first time": {nil, lies(2), lies(2)},
		"again":          {lies(2), lies(2), nil},
		"another":        {lies(1), lies(2), lies(2)},
		"no more":        {lies(1), nil, nil},
		"a flood":        {lies(1), lies(80), append(lies(8), "72 more things")},
	} {
		if got := lease.Tell(c.before, c.now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
