package dhcp

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
	"powercloud.unidatum.com/go/sys/lease/leasetest"
)

// play is an exchanger.
type play struct{ leasetest.Play[Lease] }

func (p *play) acquire(context.Context) (*Lease, error)         { return p.Exchange("acquire") }
func (p *play) confirm(context.Context, *Lease) (*Lease, error) { return p.Exchange("confirm") }
func (p *play) renew(context.Context, *Lease) (*Lease, error)   { return p.Exchange("renew") }
func (p *play) rebind(context.Context, *Lease) (*Lease, error)  { return p.Exchange("rebind") }

func (p *play) apply(l *Lease) {
	if l == nil {
		p.Record("drop")
		return
	}
	p.Record("use " + l.Address.Addr().String())
}

func granted(last byte) *Lease {
	return &Lease{
		Address: netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, last}), 24),
		Times:   lease.Times{Duration: 1600 * time.Second, Renew: 800 * time.Second, Rebind: 1400 * time.Second},
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
			script: []any{granted(1), granted(1), granted(1)},
			want:   "0s acquire, use 192.0.2.1, 13m20s renew, use 192.0.2.1, 26m40s renew, use 192.0.2.1, 40m0s renew",
		},
		"no server at first": {
			script: []any{silence, silence, granted(1)},
			want:   "0s acquire, 1s acquire, 3s acquire, use 192.0.2.1, 13m23s renew",
		},
		"rebound, then over": {
			script: []any{granted(1), silence, silence, silence, silence, silence, silence, silence, silence, silence, granted(2)},
			want: "0s acquire, use 192.0.2.1, 13m20s renew, 18m20s renew, 20m50s renew, 22m5s renew, 23m5s renew, " +
				"24m5s rebind, 25m22.5s rebind, 26m22.5s rebind, drop, 26m40s acquire, 26m41s acquire, use 192.0.2.2, 40m1s renew",
		},
		"refused": {
			script: []any{granted(1), errRefused, granted(2)},
			want:   "0s acquire, use 192.0.2.1, 13m20s renew, drop, 13m20s acquire, use 192.0.2.2, 26m40s renew",
		},
		"back on the same network": {
			script: []any{granted(1), granted(1)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, use 192.0.2.1, 13m30s renew",
		},
		"on another network that says so": {
			script: []any{granted(1), errRefused, granted(9)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, drop, 10s acquire, use 192.0.2.9, 13m30s renew",
		},
		"on another network that doesn't": {
			script: []any{granted(1), silence, granted(9)},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, 10s acquire, drop, use 192.0.2.9, 13m30s renew",
		},
		"on a network without a server": {
			script: []any{granted(1), silence, silence},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use 192.0.2.1, 10s confirm, 10s acquire, 13m20s renew",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{leasetest.Play[Lease]{Script: c.script, Moves: c.moves}}
			p.Run(t, newClient(p, p.Clock(), Options{Apply: p.apply, Moved: p.Moved(), Log: slog.New(slog.DiscardHandler)}), c.want)
		})
	}
}

func TestLiesAtEachRenewalDoNotFloodTheLog(t *testing.T) {
	lying := granted(1)
	for range maxRoutes {
		lying.ignore("a route")
	}
	var lines bytes.Buffer
	p := &play{leasetest.Play[Lease]{Script: []any{lying, lying, lying}}}
	p.Run(t, newClient(p, p.Clock(), Options{Apply: p.apply, Moved: p.Moved(), Log: slog.New(slog.NewTextHandler(&lines, nil))}),
		"0s acquire, use 192.0.2.1, 13m20s renew, use 192.0.2.1, 26m40s renew, use 192.0.2.1, 40m0s renew")
	if n := strings.Count(lines.String(), "not taken"); n == 0 || n > 10 {
		t.Errorf("%d lines:\n%s", n, lines.String())
	}
}
