package dhcp

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"time"
)

const (
	// firstPause and longestPause bound how long a client that found no server
	// waits before it looks again.
	firstPause   = time.Second
	longestPause = 64 * time.Second
	// leastPause is the least between two requests for more time, for long
	// leases (RFC 2131, section 4.4.5).
	leastPause = time.Minute
	// confirmTimeout is how long an answer is awaited about an address that may
	// be another network's.
	confirmTimeout = 5 * time.Second
)

// Client keeps an address for one interface.
type Client struct {
	exchange exchanger
	log      *slog.Logger
	apply    func(*Lease)
	moved    <-chan struct{}
	now      func() time.Time
	after    func(time.Duration) <-chan time.Time
	jitter   func() float64 // from 0 to 1
}

// Options are what a Client works with.
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

// New returns a client.
func New(o Options) *Client {
	return &Client{
		exchange: &wire{name: o.Interface, hardwareAddr: o.HardwareAddr},
		log:      o.Log, apply: o.Apply, moved: o.Moved,
		now: time.Now, after: time.After, jitter: rand.Float64,
	}
}

// Run gets and keeps an address until ctx is done. The address isn't given back
// then: whoever starts again gets the same, and connections go on.
func (c *Client) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		lease, began, err := c.find(ctx)
		if err != nil {
			break
		}
		c.keep(ctx, lease, began)
	}
	return ctx.Err()
}

// find looks for a server until there is one. It returns when the lease began.
func (c *Client) find(ctx context.Context) (*Lease, time.Time, error) {
	pause := firstPause
	for {
		began := c.now()
		lease, err := c.exchange.acquire(ctx)
		if err == nil {
			return lease, began, nil
		}
		if ctx.Err() != nil {
			return nil, began, ctx.Err()
		}
		// Often enough for people to see, not so often that it fills the log.
		c.log.Info("no address by DHCP yet", "wait", pause, "error", err)
		select {
		case <-ctx.Done():
			return nil, began, ctx.Err()
		case <-c.moved:
			pause = firstPause
			continue
		case <-c.after(c.vary(pause)):
		}
		pause = min(2*pause, longestPause)
	}
}

// vary makes a wait longer or shorter by a quarter at most, so that many
// machines that start together don't ask together.
func (c *Client) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + c.jitter()/2))
}

// keep uses a lease until it is over or refused.
func (c *Client) keep(ctx context.Context, lease *Lease, began time.Time) {
	c.use(lease)
	for {
		age := c.now().Sub(began)
		if age >= lease.Duration {
			c.log.Warn("the DHCP lease is over", "address", lease.Address)
			c.apply(nil)
			return
		}
		var next *Lease
		var err error
		var asked time.Time
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
			asked = c.now()
			next, err = c.check(ctx, lease)
		case <-c.after(c.wait(lease, age)):
			asked = c.now()
			next, err = c.extend(ctx, lease, c.now().Sub(began))
		}
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && next != nil:
			if next.Address != lease.Address {
				c.log.Info("the DHCP server gave another address", "before", lease.Address)
				c.apply(nil)
			}
			lease, began = next, asked
			c.use(lease)
		case errors.Is(err, errRefused):
			c.log.Warn("the DHCP server took the address back", "address", lease.Address)
			c.apply(nil)
			return
		case err != nil:
			c.log.Info("the DHCP lease wasn't extended", "address", lease.Address, "error", err)
		}
	}
}

func (c *Client) use(lease *Lease) {
	for _, ignored := range lease.Ignored {
		c.log.Warn("not taken from the DHCP server", "server", lease.Server, "ignored", ignored)
	}
	c.apply(lease)
}

// wait returns how long nothing is to be done for a lease of an age: until it is
// to be renewed, until the next try after that failed, or until it is over.
func (c *Client) wait(lease *Lease, age time.Duration) time.Duration {
	if age < lease.Renew {
		return lease.Renew - age
	}
	until := lease.Duration
	if age < lease.Rebind {
		until = lease.Rebind
	}
	// Half of what is left, but not too often; a short lease has less time.
	pause := max((until-age)/2, min(leastPause, lease.Duration/16))
	return min(pause, lease.Duration-age)
}

// extend asks for more time: the server that gave it, later every server.
func (c *Client) extend(ctx context.Context, lease *Lease, age time.Duration) (*Lease, error) {
	left := lease.Duration - age
	if left <= 0 {
		return nil, nil
	}
	renewing := age < lease.Rebind
	if renewing {
		left = lease.Rebind - age
	}
	// An exchange must not go on when its time is over.
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if renewing {
		return c.exchange.renew(ctx, lease)
	}
	return c.exchange.rebind(ctx, lease)
}

// check finds out whether an address can still be used, after the interface may
// have moved to another network. When nobody answers to that, any server's
// answer is taken; when there is none either, the address stays until its time
// is over.
func (c *Client) check(ctx context.Context, lease *Lease) (*Lease, error) {
	quick, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	next, err := c.exchange.confirm(quick, lease)
	if err == nil || errors.Is(err, errRefused) {
		return next, err
	}
	again, cancelAgain := context.WithTimeout(ctx, 2*confirmTimeout)
	defer cancelAgain()
	return c.exchange.acquire(again)
}
