package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"time"

	"powercloud.unidatum.com/go/sys/lease"
)

const (
	// longestPause bounds how long a client that found no server waits before it
	// looks again.
	longestPause = 64 * time.Second
	// confirmTimeout is how long an answer is awaited about an address that may
	// be another network's.
	confirmTimeout = 5 * time.Second
)

// Options are what a client works with.
type Options struct {
	// Interface is the interface's name, HardwareAddr its Ethernet address.
	Interface    string
	HardwareAddr net.HardwareAddr
	// Apply is called with each lease that is new or has got more time, and
	// with nil when the address may not be used any more. It is called by Run.
	Apply func(*Lease)
	// Moved is sent on when the interface may be on another network, because
	// its carrier came back.
	Moved <-chan struct{}
	Log   *slog.Logger
}

// New returns a client that keeps an address for one interface.
func New(o Options) *lease.Client[Lease] {
	return newClient(&wire{name: o.Interface, hardwareAddr: o.HardwareAddr}, lease.SystemClock(), o)
}

func newClient(exchange exchanger, clock lease.Clock, o Options) *lease.Client[Lease] {
	return &lease.Client[Lease]{
		Protocol: &protocol{exchange: exchange, log: o.Log, apply: o.Apply},
		Refused:  errRefused, LongestPause: longestPause, Moved: o.Moved, Clock: clock,
	}
}

// protocol is DHCP, for package lease.
type protocol struct {
	exchange exchanger
	log      *slog.Logger
	apply    func(*Lease)
}

// Times returns a lease's times.
func (p *protocol) Times(l *Lease) lease.Times { return l.Times }

// Acquire finds a server and gets a lease.
func (p *protocol) Acquire(ctx context.Context) (*Lease, error) { return p.exchange.acquire(ctx) }

// Extend asks for more time.
func (p *protocol) Extend(ctx context.Context, l *Lease, age time.Duration) (*Lease, error) {
	return lease.Extend(ctx, l.Times, age, l, p.exchange.renew, p.exchange.rebind)
}

// Check finds out whether an address can still be used, after the interface may
// have moved to another network. When nobody answers to that, any server's
// answer is taken; when there is none either, the address stays until its time
// is over.
func (p *protocol) Check(ctx context.Context, l *Lease, _ time.Duration) (*Lease, error) {
	quick, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	next, err := p.exchange.confirm(quick, l)
	if err == nil || errors.Is(err, errRefused) {
		return next, err
	}
	again, cancelAgain := context.WithTimeout(ctx, 2*confirmTimeout)
	defer cancelAgain()
	return p.exchange.acquire(again)
}

// Use applies a lease, and takes back an address that was another before.
func (p *protocol) Use(before, l *Lease) {
	if before != nil && before.Address != l.Address {
		p.log.Info("the DHCP server gave another address", "before", before.Address)
		p.apply(nil)
	}
	var told []string
	if before != nil {
		told = before.Ignored
	}
	for _, ignored := range lease.Tell(told, l.Ignored) {
		p.log.Warn("not taken from the DHCP server", "server", l.Server, "ignored", ignored)
	}
	p.apply(l)
}

// Lose takes the address back.
func (p *protocol) Lose(l *Lease, refusal error) {
	if refusal != nil {
		p.log.Warn("the DHCP server took the address back", "address", l.Address)
	} else {
		p.log.Warn("the DHCP lease is over", "address", l.Address)
	}
	p.apply(nil)
}

// Missing says that there is no address yet.
func (p *protocol) Missing(wait time.Duration, err error) {
	p.log.Info("no address by DHCP yet", "wait", wait, "err", err)
}

// NotExtended says that the address got no more time.
func (p *protocol) NotExtended(l *Lease, err error) {
	p.log.Info("the DHCP lease wasn't extended", "address", l.Address, "err", err)
}
