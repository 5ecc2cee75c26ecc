package dhcp6

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
	longestPause = 2 * time.Minute
	// leastPause is the least between two requests for more time, for long
	// lifetimes.
	leastPause = time.Minute
)

// Client keeps an interface's addresses, or its other settings alone.
type Client struct {
	exchange  exchanger
	addresses bool
	log       *slog.Logger
	apply     func(*Lease)
	moved     <-chan struct{}
	now       func() time.Time
	after     func(time.Duration) <-chan time.Time
	jitter    func() float64 // from 0 to 1
}

// Options are what a Client works with.
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

// New returns a client.
func New(o Options) *Client {
	return &Client{
		exchange:  &wire{name: o.Interface, hardwareAddr: o.HardwareAddr},
		addresses: o.Addresses, log: o.Log, apply: o.Apply, moved: o.Moved,
		now: time.Now, after: time.After, jitter: rand.Float64,
	}
}

// Run gets and keeps a lease until ctx is done. The lease isn't given back then:
// whoever starts again gets the same.
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

// obtain gets a lease anew.
func (c *Client) obtain(ctx context.Context) (*Lease, error) {
	if c.addresses {
		return c.exchange.acquire(ctx)
	}
	return c.exchange.inform(ctx)
}

// find looks for a server until there is one. It returns when the lease began.
func (c *Client) find(ctx context.Context) (*Lease, time.Time, error) {
	pause := firstPause
	for {
		began := c.now()
		lease, err := c.obtain(ctx)
		if err == nil {
			return lease, began, nil
		}
		if ctx.Err() != nil {
			return nil, began, ctx.Err()
		}
		c.log.Info("nothing by DHCPv6 yet", "wait", pause, "error", err)
		select {
		case <-ctx.Done():
			return nil, began, ctx.Err()
		case <-c.moved:
			pause = firstPause
			continue
		case <-c.after(time.Duration(float64(pause) * (0.75 + c.jitter()/2))):
		}
		pause = min(2*pause, longestPause)
	}
}

// keep uses a lease until it is over or refused.
func (c *Client) keep(ctx context.Context, lease *Lease, began time.Time) {
	c.use(lease)
	for {
		age := c.now().Sub(began)
		if age >= lease.Duration {
			if c.addresses {
				c.log.Warn("the DHCPv6 lease is over")
			}
			c.apply(nil)
			return
		}
		var next *Lease
		var err error
		select {
		case <-ctx.Done():
			return
		case <-c.moved:
			// Rebind is also for finding out whether the network is still the
			// same (RFC 8415, section 18.2.12).
			age = max(age, lease.Rebind)
		case <-c.after(c.wait(lease, age)):
			age = c.now().Sub(began)
		}
		asked := c.now()
		next, err = c.extend(ctx, lease, age, lease.Duration-c.now().Sub(began))
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && next != nil:
			lease, began = next, asked
			c.use(lease)
		case errors.Is(err, errRefused):
			c.log.Warn("the DHCPv6 server took the addresses back", "error", err)
			c.apply(nil)
			return
		case err != nil:
			c.log.Info("the DHCPv6 lease wasn't extended", "error", err)
		}
	}
}

func (c *Client) use(lease *Lease) {
	for _, ignored := range lease.Ignored {
		c.log.Warn("not taken from the DHCPv6 server", "ignored", ignored)
	}
	c.apply(lease)
}

// wait returns how long nothing is to be done for a lease of an age.
func (c *Client) wait(lease *Lease, age time.Duration) time.Duration {
	if age < lease.Renew {
		return lease.Renew - age
	}
	until := lease.Duration
	if age < lease.Rebind {
		until = lease.Rebind
	}
	pause := max((until-age)/2, min(leastPause, lease.Duration/16))
	return min(pause, lease.Duration-age)
}

// extend asks for more time: the server that gave it, later every server.
func (c *Client) extend(ctx context.Context, lease *Lease, age, left time.Duration) (*Lease, error) {
	if left <= 0 && c.addresses {
		return nil, nil
	}
	if !c.addresses {
		return c.exchange.inform(ctx)
	}
	renewing := age < lease.Rebind
	if renewing {
		left = min(left, lease.Rebind-age)
	}
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	if renewing {
		return c.exchange.renew(ctx, lease)
	}
	return c.exchange.rebind(ctx, lease)
}
