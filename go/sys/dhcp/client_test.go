package dhcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// play is an exchanger, a clock and a record of what happens. Each exchange
// takes its next outcome from a script; the play ends with the script.
type play struct {
	time   time.Time
	script []any // of *Lease and error
	moves  []time.Duration
	events []string
	moved  chan struct{}
	stop   context.CancelFunc
}

func (p *play) next(what string) (*Lease, error) {
	p.events = append(p.events, fmt.Sprintf("%v %s", p.time.Sub(time.Unix(0, 0)), what))
	if len(p.script) == 0 {
		p.stop()
		return nil, context.Canceled
	}
	outcome := p.script[0]
	p.script = p.script[1:]
	if l, ok := outcome.(*Lease); ok {
		return l, nil
	}
	return nil, outcome.(error)
}

func (p *play) acquire(context.Context) (*Lease, error)         { return p.next("acquire") }
func (p *play) confirm(context.Context, *Lease) (*Lease, error) { return p.next("confirm") }
func (p *play) renew(context.Context, *Lease) (*Lease, error)   { return p.next("renew") }
func (p *play) rebind(context.Context, *Lease) (*Lease, error)  { return p.next("rebind") }

// after lets the time pass at once, unless the interface moves before.
func (p *play) after(d time.Duration) <-chan time.Time {
	c := make(chan time.Time, 1)
	if len(p.moves) > 0 && p.moves[0] <= d {
		p.time = p.time.Add(p.moves[0])
		p.moves = p.moves[1:]
		p.moved <- struct{}{}
		return c
	}
	if len(p.moves) > 0 {
		p.moves[0] -= d
	}
	p.time = p.time.Add(d)
	c <- p.time
	return c
}

func (p *play) apply(l *Lease) {
	if l == nil {
		p.events = append(p.events, "drop")
		return
	}
	p.events = append(p.events, "use "+l.Address.Addr().String())
}

func lease(last byte) *Lease {
	return &Lease{
		Address:  netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, last}), 24),
		Duration: 1600 * time.Second, Renew: 800 * time.Second, Rebind: 1400 * time.Second,
	}
}

func TestClient(t *testing.T) {
	silence := errors.New("no answer")
	for name, c := range map[string]struct {
		script []any
		moves  []time.Duration
		want   string
	}{
		"renewed": {
			script: []any{lease(1), lease(1), lease(1)},
			want:   "0s acquire, use 192.0.2.1, 13m20s renew, use 192.0.2.1, 26m40s renew, use 192.0.2.1, 40m0s renew",
		},
		"no server at first": {
			script: []any{silence, silence, lease(1)},
			want:   "0s acquire, 1s acquire, 3s acquire, use 192.0.2.1, 13m23s renew",
		},
		"rebound, then over": {
			script: []any{lease(1), silence, silence, silence, silence, silence, silence, silence, silence, silence, lease(2)},
			want: "0s acquire, use 192.0.2.1, 13m20s renew, 18m20s renew, 20m50s renew, 22m5s renew, 23m5s renew, " +
				"24m5s rebind, 25m22.5s rebind, 26m22.5s rebind, drop, 26m40s acquire, 26m41s acquire, use 192.0.2.2, 40m1s renew",
		},
		"refused": {
			script: []any{lease(1), errRefused, lease(2)},
			want:   "0s acquire, use 192.0.2.1, 13m20s renew, drop, 13m20s acquire, use 192.0.2.2, 26m40s renew",
		},
		"back on the same network": {
			script: []any{lease(1), lease(1)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, use 192.0.2.1, 13m30s renew",
		},
		"on another network that says so": {
			script: []any{lease(1), errRefused, lease(9)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, drop, 10s acquire, use 192.0.2.9, 13m30s renew",
		},
		"on another network that doesn't": {
			script: []any{lease(1), silence, lease(9)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, 10s acquire, drop, use 192.0.2.9, 13m30s renew",
		},
		"on a network without a server": {
			script: []any{lease(1), silence, silence},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, 10s acquire, 13m20s renew",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			p := &play{time: time.Unix(0, 0), script: c.script, moves: c.moves, stop: stop, moved: make(chan struct{}, 1)}
			client := &Client{
				exchange: p, log: slog.New(slog.NewTextHandler(io.Discard, nil)), apply: p.apply, moved: p.moved,
				now: func() time.Time { return p.time }, after: p.after, jitter: func() float64 { return 0.5 },
			}
			if err := client.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run returned %v", err)
			}
			if got := strings.Join(p.events, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestJitterStaysInBounds(t *testing.T) {
	var got []time.Duration
	for _, j := range []float64{0, 0.5, 1} {
		c := &Client{jitter: func() float64 { return j }}
		got = append(got, c.vary(4*time.Second))
	}
	if !slices.Equal(got, []time.Duration{3 * time.Second, 4 * time.Second, 5 * time.Second}) {
		t.Errorf("%v", got)
	}
}
