package clock

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/output"
)

var build = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestChoose(t *testing.T) {
	m := func(name string, offset, err time.Duration) Measurement { return Measurement{name, offset, err} }
	for name, c := range map[string]struct {
		all   []Measurement
		best  string
		wrong []string
		err   error
	}{
		"nobody":        {nil, "", nil, errNobody},
		"one":           {[]Measurement{m("a", 5, 1)}, "a", nil, nil},
		"two agree":     {[]Measurement{m("a", 5, 2), m("b", 6, 1)}, "b", nil, nil},
		"two don't":     {[]Measurement{m("a", 5, 2), m("b", 16, 1)}, "", []string{"a", "b"}, errDisagreement},
		"one liar":      {[]Measurement{m("a", 5, 2), m("liar", 9000, 1), m("b", 6, 3)}, "a", []string{"liar"}, nil},
		"half lie":      {[]Measurement{m("a", 5, 2), m("l1", 900, 1), m("b", 6, 3), m("l2", 901, 1)}, "", []string{"a", "l1", "b", "l2"}, errDisagreement},
		"chained":       {[]Measurement{m("a", 0, 2), m("b", 3, 2), m("c", 6, 2)}, "a", []string{"c"}, nil},
		"a vague one":   {[]Measurement{m("a", 5, 2), m("vague", 50, 100), m("b", 6, 3)}, "a", nil, nil},
		"liars scatter": {[]Measurement{m("a", 5, 2), m("l1", 900, 1), m("b", 6, 3), m("l2", -90, 1), m("c", 5, 1)}, "c", []string{"l1", "l2"}, nil},
	} {
		best, wrong, err := choose(c.all)
		var names []string
		for _, w := range wrong {
			names = append(names, w.Source)
		}
		if best.Source != c.best || !slices.Equal(names, c.wrong) || !errors.Is(err, c.err) {
			t.Errorf("%s: best %q, wrong %q, %v", name, best.Source, names, err)
		}
	}
}

// fake is a clock that records, and a script of what servers say.
type fake struct {
	time   time.Time
	events []string
}

func (f *fake) Now() time.Time { return f.time }

func (f *fake) Step(offset time.Duration) error {
	f.time = f.time.Add(offset)
	f.events = append(f.events, "step "+offset.String())
	return nil
}

func (f *fake) Slew(offset, _, _ time.Duration) error {
	f.events = append(f.events, "slew "+offset.String())
	return nil
}

// play runs a keeper through rounds, in each of which every server says one
// offset, and returns what happened to the clock.
func play(t *testing.T, start time.Time, offsets ...time.Duration) []string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &fake{time: start}
	round := 0
	k := New(Config{
		Clock: f, Build: build, Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Pool: []string{"pool"},
		Servers: func() ([]string, <-chan struct{}) { return []string{"named"}, nil },
		Query: func(_ context.Context, server string) (Measurement, error) {
			if round >= len(offsets) {
				return Measurement{}, errors.New("no answer")
			}
			return Measurement{server, offsets[round], time.Millisecond}, nil
		},
		After: func(d time.Duration) <-chan time.Time {
			if round++; round >= len(offsets) {
				stop()
			}
			f.time = f.time.Add(d)
			c := make(chan time.Time, 1)
			c <- f.time
			return c
		},
	})
	if err := k.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	return f.events
}

func TestKeeper(t *testing.T) {
	const hour, year = time.Hour, 365 * 24 * time.Hour
	good := build.Add(30 * 24 * hour)
	for name, c := range map[string]struct {
		start   time.Time
		offsets []time.Duration
		want    string
	}{
		"step, then slew":     {good, []time.Duration{hour, 20 * time.Millisecond, -time.Second}, "step 1h0m0s, slew 0s, slew 20ms, slew -1s"},
		"nearly right":        {good, []time.Duration{30 * time.Millisecond}, "slew 30ms"},
		"a clock of 1970":     {time.Unix(0, 0), []time.Duration{hour}, "step " + build.Sub(time.Unix(0, 0)).String() + ", step 1h0m0s, slew 0s"},
		"before the build":    {good, []time.Duration{-year, hour}, "step 1h0m0s, slew 0s"},
		"far in the future":   {good, []time.Duration{30 * year, hour}, "step 1h0m0s, slew 0s"},
		"paused":              {good, []time.Duration{0, hour, hour, hour, 0}, "slew 0s, step 1h0m0s, slew 0s, slew 0s"},
		"a wild round":        {good, []time.Duration{0, hour, 0, hour, hour, 0}, "slew 0s, slew 0s, slew 0s"},
		"wild in many ways":   {good, []time.Duration{0, hour, 2 * hour, 3 * hour}, "slew 0s"},
		"backwards when sure": {good, []time.Duration{0, -hour, -hour, -hour}, "slew 0s, step -1h0m0s, slew 0s"},
	} {
		if got := strings.Join(play(t, c.start, c.offsets...), ", "); got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, c.want)
		}
	}
}

// serve is an NTP server that is wrong by an offset. It returns where it is.
func serve(t *testing.T, wrong time.Duration, change func(answer []byte)) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		request := make([]byte, 512)
		for {
			n, peer, err := conn.ReadFrom(request)
			if err != nil {
				return
			}
			if n < 48 {
				continue
			}
			_, _ = conn.WriteTo(answerNTP(request[:n], time.Now().Add(wrong), change), peer)
		}
	}()
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	return conn.LocalAddr().String()
}

// answerNTP makes an answer of a server of stratum 1 (RFC 5905, section 7.3).
func answerNTP(request []byte, now time.Time, change func([]byte)) []byte {
	b := make([]byte, 48)
	b[0], b[1], b[2], b[3] = 4<<3|4, 1, 6, 0xe8
	copy(b[12:], "GPS\x00")
	const epoch = 2_208_988_800
	stamp := uint64(now.Unix()+epoch)<<32 | uint64(now.Nanosecond())<<32/1_000_000_000
	binary.BigEndian.PutUint64(b[16:], stamp)
	copy(b[24:32], request[40:48])
	binary.BigEndian.PutUint64(b[32:], stamp)
	binary.BigEndian.PutUint64(b[40:], stamp)
	if change != nil {
		change(b)
	}
	return b
}

// TestUnknownTimeIsToldOnce: once for each reason, however often the network changes.
func TestUnknownTimeIsToldOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	changed := make(chan struct{})
	close(changed)
	var log output.Text
	round := 0
	k := New(Config{
		Clock: &fake{time: build}, Build: build, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Servers: func() ([]string, <-chan struct{}) {
			round++
			return []string{"named"}, changed
		},
		Query: func(_ context.Context, server string) (Measurement, error) {
			switch {
			case round <= 5:
				return Measurement{}, errors.New("connect: network is unreachable")
			case round <= 10:
				return Measurement{}, fmt.Errorf("read udp 192.0.2.1:%d->[2001:db8::%x]:123: i/o timeout", 40000+round, round)
			case round <= 15:
				return Measurement{}, errors.New("connect: network is unreachable")
			}
			return Measurement{server, 0, time.Millisecond}, nil
		},
		After: func(time.Duration) <-chan time.Time {
			if round > 15 {
				stop()
				return nil
			}
			return passed()
		},
	})
	if err := k.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	want := []string{"network is unreachable", "i/o timeout", "network is unreachable", "the clock is right"}
	lines := slices.Collect(strings.Lines(log.String()))
	if !slices.EqualFunc(lines, want, strings.Contains) {
		t.Errorf("the log has\n%s", log.String())
	}
}

// passed is a time that is over.
func passed() <-chan time.Time {
	c := make(chan time.Time, 1)
	c <- time.Time{}
	return c
}

// TestNetworkThatAlwaysChanges has the network change during every round. In an hour
// the servers may hardly be asked more often than with a network that is quiet.
func TestNetworkThatAlwaysChanges(t *testing.T) {
	rounds := func(changes bool) int {
		ctx, stop := context.WithCancel(t.Context())
		changed := make(chan struct{})
		if changes {
			close(changed)
		}
		begun, waits, elapsed := 0, 0, time.Duration(0)
		k := New(Config{
			Clock: &fake{time: build}, Build: build, Log: slog.New(slog.DiscardHandler),
			Servers: func() ([]string, <-chan struct{}) {
				begun, waits = begun+1, 0
				return []string{"named"}, changed
			},
			Query: func(context.Context, string) (Measurement, error) { return Measurement{}, errors.New("no answer") },
			After: func(d time.Duration) <-chan time.Time {
				if waits++; changes && waits == 1 {
					// The change is there first.
					return nil
				}
				if elapsed += d; elapsed > time.Hour {
					stop()
					return nil
				}
				return passed()
			},
		})
		if err := k.Run(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		return begun
	}
	if quiet, changing := rounds(false), rounds(true); changing > quiet+5 || changing < quiet-5 {
		t.Errorf("%d rounds in an hour with a network that changes, %d with one that is quiet", changing, quiet)
	}
}

func TestPacing(t *testing.T) {
	p := newPacing()
	for range 10 {
		p.failed()
	}
	// Something was plugged in after a long time: soon, and often for a while.
	p.quiet(longestPause)
	if wait := p.changed(); wait != firstHaste {
		t.Errorf("after a change another round begins in %v", wait)
	}
	if wait := p.failed(); wait != firstPause {
		t.Errorf("and then in %v", wait)
	}
	// The next changes count for less, also with pauses of less than the longest.
	for i := range 12 {
		want := min(firstHaste<<(i+1), longestPause)
		if wait := p.changed(); wait != want {
			t.Errorf("after another %d changes a round begins in %v, want %v", i+1, wait, want)
		}
		p.quiet(longestPause - 1)
	}
}

func TestNTP(t *testing.T) {
	m, err := queryNTP(t.Context(), serve(t, time.Hour, nil))
	if err != nil || (m.Offset-time.Hour).Abs() > m.Error || m.Error > time.Second {
		t.Errorf("%+v, %v", m, err)
	}
	for name, change := range map[string]func([]byte){
		"not synchronized": func(b []byte) { b[0] |= 3 << 6 },
		"kiss of death":    func(b []byte) { b[1] = 0; copy(b[12:], "RATE") },
		"to another":       func(b []byte) { b[24] ^= 1 },
		"no answer mode":   func(b []byte) { b[0] = 4<<3 | 3 },
		"very inexact":     func(b []byte) { b[9] = 200 },
	} {
		if m, err := queryNTP(t.Context(), serve(t, 0, change)); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
}

func TestLyingNTPServersAreOutvoted(t *testing.T) {
	f := &fake{time: time.Now()}
	ctx, stop := context.WithCancel(t.Context())
	servers := []string{serve(t, 3*time.Second, nil), serve(t, 9000*time.Hour, nil), serve(t, 3*time.Second, nil), serve(t, -time.Hour, nil), serve(t, 3*time.Second, nil)}
	k := New(Config{
		Clock: f, Build: build, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Servers: func() ([]string, <-chan struct{}) { return servers, nil },
		After:   func(time.Duration) <-chan time.Time { stop(); return nil },
	})
	if err := k.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(f.events) != 2 || !strings.HasPrefix(f.events[0], "step 2.9") && !strings.HasPrefix(f.events[0], "step 3") {
		t.Errorf("events %q", f.events)
	}
	select {
	case <-k.Synced():
	default:
		t.Error("it isn't synchronized")
	}
}

func TestPoolAnswersWhereNamedServersDont(t *testing.T) {
	f := &fake{time: build.Add(time.Hour)}
	k := New(Config{
		Clock: f, Build: build, Pool: []string{"pool"}, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Query: func(_ context.Context, server string) (Measurement, error) {
			if server == "pool" {
				return Measurement{server, time.Second, time.Millisecond}, nil
			}
			return Measurement{}, errors.New("no answer")
		},
	})
	if err := k.round(t.Context(), []string{"named"}); err != nil || !slices.Equal(f.events, []string{"step 1s", "slew 0s"}) {
		t.Errorf("%v, %v", f.events, err)
	}
}
