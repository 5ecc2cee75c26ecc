package dhcp6

import (
	"context"
	"log/slog"
	"net"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
)

// longestPause bounds how long a client that found no server waits before it
// looks again.
const longestPause = 2 * time.Minute

// Options are what a client works with.
type Options struct {
	// Interface is the interface's name, HardwareAddr its Ethernet address.
	Interface    string
	HardwareAddr net.HardwareAddr
	// Addresses is whether addresses are wanted, which a router must have said
	// that this network's servers have; otherwise only settings are.
	Addresses bool
	// Apply is called with each lease that is new or has got more time, and
	// with nil when it may not be used any more. It is called by Run.
	Apply func(*Lease)
	// Moved is sent on when the interface may be on another network.
	Moved <-chan struct{}
	Log   *slog.Logger
}

// New returns a client that keeps an interface's addresses, or its other
// settings alone.
func New(o Options) *lease.Client[Lease] {
	return newClient(&wire{name: o.Interface, hardwareAddr: o.HardwareAddr}, lease.SystemClock(), o)
}

func newClient(exchange exchanger, clock lease.Clock, o Options) *lease.Client[Lease] {
	return &lease.Client[Lease]{
		Protocol: &protocol{exchange: exchange, addresses: o.Addresses, log: o.Log, apply: o.Apply},
		Refused:  errRefused, LongestPause: longestPause, Moved: o.Moved, Clock: clock,
	}
}

// protocol is DHCPv6, for package lease.
type protocol struct {
	exchange  exchanger
	addresses bool
	log       *slog.Logger
	apply     func(*Lease)
}

// Times returns a lease's times.
func (p *protocol) Times(l *Lease) lease.Times { return l.Times }

// Acquire gets a lease anew.
func (p *protocol) Acquire(ctx context.Context) (*Lease, error) {
	if p.addresses {
		return p.exchange.acquire(ctx)
	}
	return p.exchange.inform(ctx)
}

// Extend asks for more time. Settings are asked for once more even when their
// time is over, since they may stay then.
func (p *protocol) Extend(ctx context.Context, l *Lease, age time.Duration) (*Lease, error) {
	if !p.addresses {
		return p.exchange.inform(ctx)
	}
	return lease.Extend(ctx, l.Times, age, l, p.exchange.renew, p.exchange.rebind)
}

// Check finds out whether the network is still the same: rebinding is also for
// that (RFC 8415, section 18.2.12).
func (p *protocol) Check(ctx context.Context, l *Lease, age time.Duration) (*Lease, error) {
	if !p.addresses {
		return p.exchange.inform(ctx)
	}
	return lease.Within(ctx, l.Duration-age, l, p.exchange.rebind)
}

// Use applies a lease.
func (p *protocol) Use(before, l *Lease) {
	var told []string
	if before != nil {
		told = before.Ignored
	}
	for _, ignored := range lease.Tell(told, l.Ignored) {
		p.log.Warn("not taken from the DHCPv6 server", "ignored", ignored)
	}
	p.apply(l)
}

// Lose takes the lease back.
func (p *protocol) Lose(_ *Lease, refusal error) {
	switch {
	case refusal != nil:
		p.log.Warn("the DHCPv6 server took the addresses back", "err", refusal)
	case p.addresses:
		p.log.Warn("the DHCPv6 lease is over")
	}
	p.apply(nil)
}

// Missing says that there is no lease yet.
func (p *protocol) Missing(wait time.Duration, err error) {
	p.log.Info("nothing by DHCPv6 yet", "wait", wait, "err", err)
}

// NotExtended says that the lease got no more time.
func (p *protocol) NotExtended(_ *Lease, err error) {
	p.log.Info("the DHCPv6 lease wasn't extended", "err", err)
}
