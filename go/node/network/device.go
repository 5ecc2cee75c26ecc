package network

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/node/backoff"
	"powercloud.unidatum.com/go/node/supervisor"
	"powercloud.unidatum.com/go/sys/dhcp"
	"powercloud.unidatum.com/go/sys/dhcp6"
	"powercloud.unidatum.com/go/sys/link"
	"powercloud.unidatum.com/go/sys/routerad"
	"powercloud.unidatum.com/go/sys/sysctl"
)

const (
	// firstMetric is what the first interface's routes begin with.
	firstMetric = 1000
	// leastMTU6 is the least MTU in bytes with which the kernel keeps IPv6 on an
	// interface (RFC 8200).
	leastMTU6 = 1280
)

// device is one interface that is managed.
type device struct {
	network *Network
	table   *link.Table
	log     *slog.Logger
	name    string
	index   int
	stop    context.CancelFunc
	ended   chan struct{}

	// These are sent on when the carrier has come back; each part has its own.
	moved4, moved6, movedRouters chan struct{}
	// carrier is closed when there was one for the first time.
	carrier chan struct{}
	// mode tells the DHCPv6 part what routers say; only the last word counts.
	mode chan mode

	mu   sync.Mutex
	last link.Interface
	// ownMTU is the MTU that the interface had before a server set another.
	ownMTU int
	// addresses6 are the addresses that DHCPv6 has given.
	addresses6 []netip.Prefix
}

// mode is what DHCPv6 is for on an interface's network.
type mode int

const (
	modeNone mode = iota
	modeSettings
	modeAddresses
)

// start begins to manage an interface.
func (n *Network) start(ctx context.Context, table *link.Table, i link.Interface) *device {
	ctx, stop := context.WithCancel(ctx)
	d := &device{
		network: n, table: table, log: n.config.Log.With("interface", i.Name), name: i.Name, index: i.Index,
		stop: stop, ended: make(chan struct{}),
		moved4: make(chan struct{}, 1), moved6: make(chan struct{}, 1), movedRouters: make(chan struct{}, 1),
		carrier: make(chan struct{}), mode: make(chan mode, 1),
		last: i, ownMTU: n.recallMTU(i.Index, i.MTU),
	}
	d.log.Info("managing a network interface", "address", i.HardwareAddr.String(), "carrier", i.Carrier)
	if i.Carrier {
		close(d.carrier)
	}
	go func() {
		defer close(d.ended)
		d.run(ctx, i)
	}()
	return d
}

// run manages the interface until ctx is done.
func (d *device) run(ctx context.Context, i link.Interface) {
	for _, err := range sysctl.Apply(d.network.config.SysctlRoot, d.settings()) {
		d.log.Warn("the interface isn't set up as it should be", "err", err)
	}
	if !i.Up {
		if err := d.table.Up(d.index); err != nil {
			d.log.Error("the interface stays off", "err", err)
		}
	}
	select {
	case <-ctx.Done():
		return
	case <-d.carrier:
	}
	tree := supervisor.New(supervisor.Options{Log: d.log, Policy: backoff.Policy{Most: 5 * time.Second}},
		supervisor.Component{Name: "dhcp", Run: dhcp.New(dhcp.Options{
			Interface: d.name, HardwareAddr: i.HardwareAddr, Apply: d.applyLease, Moved: d.moved4, Log: d.log,
		}).Run},
		supervisor.Component{Name: "routers", Run: d.runRouters},
		supervisor.Component{Name: "dhcp6", Run: func(ctx context.Context) error { return d.runDHCP6(ctx, i) }},
	)
	// Its only error is ctx's.
	_ = tree.Run(ctx)
}

// awaitLinkLocal waits until the interface has an address for its own link that
// is known to be unique, which takes a second or two.
func (d *device) awaitLinkLocal(ctx context.Context) error {
	for {
		state, changed := d.network.State()
		for _, i := range state.Interfaces {
			if i.Index == d.index && slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool {
				return p.Addr().Is6() && p.Addr().IsLinkLocalUnicast()
			}) {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// settings are the kernel's parameters of the interface.
func (d *device) settings() []sysctl.Setting {
	of := func(name, value, reason string) sysctl.Setting {
		return sysctl.Setting{Name: d.parameter(name), Value: value, Reason: reason}
	}
	return []sysctl.Setting{
		of(acceptRouters, deaf, "routers are heeded while pcd counts what they announce"),
		of("autoconf", "1", "routers give addresses"),
		of("use_tempaddr", "0", "a node is to be found"),
		of("ra_defrtr_metric", fmt.Sprint(d.metric()), "interfaces have an order"),
	}
}

// parameter is the name of one of the kernel's parameters of the interface.
func (d *device) parameter(name string) string { return "net/ipv6/conf/" + d.name + "/" + name }

func (d *device) metric() int { return firstMetric + d.index }

// observe compares the interface with what it was.
func (d *device) observe(i link.Interface) {
	d.mu.Lock()
	before := d.last
	d.last = i
	d.mu.Unlock()
	if !i.Up {
		if err := d.table.Up(d.index); err != nil {
			d.log.Error("the interface stays off", "err", err)
		}
	}
	if before.Carrier == i.Carrier {
		return
	}
	d.log.Info("carrier", "carrier", i.Carrier)
	if !i.Carrier {
		return
	}
	select {
	case <-d.carrier:
		for _, moved := range []chan struct{}{d.moved4, d.moved6, d.movedRouters} {
			select {
			case moved <- struct{}{}:
			default:
			}
		}
	default:
		close(d.carrier)
	}
}

// hear takes what a router announces.
func (d *device) hear(a routerad.Advertisement) {
	now := time.Now()
	d.network.learn(d.index, func(s *servers) {
		for _, server := range a.DNS {
			s.announce(server.Address, server.Lifetime, now)
		}
	})
	m := modeNone
	switch {
	case a.Managed:
		m = modeAddresses
	case a.Other:
		m = modeSettings
	}
	// What is in the channel is older.
	select {
	case <-d.mode:
	default:
	}
	d.mode <- m
}

// runDHCP6 runs a DHCPv6 client while routers say that there are servers.
func (d *device) runDHCP6(ctx context.Context, i link.Interface) error {
	var client sync.WaitGroup
	defer client.Wait()
	stop := func() {}
	defer func() { stop() }()
	current := modeNone
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-d.mode:
			// Of several routers some may not know of a server: the most that
			// anybody said counts, until the interface goes.
			if m <= current {
				continue
			}
			current = m
		}
		stop()
		client.Wait()
		d.log.Info("routers say that there is DHCPv6", "addresses", current == modeAddresses)
		running, cancel := context.WithCancel(ctx)
		stop = cancel
		c := dhcp6.New(dhcp6.Options{
			Interface: d.name, HardwareAddr: i.HardwareAddr, Addresses: current == modeAddresses,
			Apply: d.applyLease6, Moved: d.moved6, Log: d.log,
		})
		client.Go(func() { _ = c.Run(running) })
	}
}

// applyLease6 gives the interface what DHCPv6 says, or takes it away.
func (d *device) applyLease6(l *dhcp6.Lease) {
	d.mu.Lock()
	old := d.addresses6
	d.addresses6 = nil
	d.mu.Unlock()
	var now []netip.Prefix
	if l == nil {
		l = &dhcp6.Lease{}
	}
	for _, a := range l.Addresses {
		// Which addresses are neighbours is for routers to say (RFC 8415,
		// section 18.2.10.1).
		p := netip.PrefixFrom(a.Address, 128)
		if err := d.table.SetAddress(d.index, p, a.Valid, a.Preferred); err != nil {
			d.log.Error("an address by DHCPv6 can't be used", "err", err)
			continue
		}
		if !slices.Contains(old, p) {
			d.log.Info("address by DHCPv6", "address", a.Address, "valid", a.Valid)
		}
		now = append(now, p)
	}
	for _, p := range old {
		if !slices.Contains(now, p) {
			d.log.Info("address by DHCPv6 is over", "address", p.Addr())
			if err := d.table.RemoveAddress(d.index, p); err != nil {
				d.log.Warn("an address that is over stays", "err", err)
			}
		}
	}
	d.mu.Lock()
	d.addresses6 = now
	d.mu.Unlock()
	d.network.learn(d.index, func(s *servers) { s.dhcp6DNS, s.dhcp6NTP = l.DNS, l.NTP })
}
