// Package network brings up a node's network and keeps it up: every Ethernet-like
// interface gets its addresses by DHCP and from IPv6 routers, its routes and MTU,
// and the node its name servers.
//
// # Several interfaces
//
// Each interface stands by itself. Routes have a metric by the kernel's order of
// the interfaces: with two default routes the first interface's is used. When it
// loses its carrier the kernel passes over its routes (the parameter
// ignore_routes_with_linkdown), and the next one's are used at once.
//
// # Carrier
//
// An interface that loses its carrier keeps its addresses: most often the cable
// comes back within seconds. When it does, the DHCP servers and the routers are
// asked whether this is still the same network.
//
// # Trust
//
// Nothing that arrives here is authentic; it decides where packets go, not whom
// the node believes. Bounds and checks are in the packages below go/sys.
package network

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"powercloud.unidatum.com/go/sys/link"
	"powercloud.unidatum.com/go/sys/resolver"
)

// pace is the least time between two looks at the interfaces and at what their
// networks have named. Strangers could otherwise have the name servers written, and
// lines into the log, as often as they send.
const pace = 100 * time.Millisecond

// Config is what a Network works with.
type Config struct {
	// Manage tells whether an interface is to be brought up; Physical when nil.
	Manage func(link.Interface) bool
	// ResolvConf is the file that tells resolvers the name servers.
	ResolvConf string
	// RunFolder is a folder in memory for what a pcd that is started again must know.
	RunFolder string
	// SysctlRoot is where the kernel's parameters are.
	SysctlRoot string
	Log        *slog.Logger
}

// Physical tells whether an interface is an Ethernet-like device, a virtual
// machine's among them, and not made by software nor a part of another.
func Physical(i link.Interface) bool {
	return i.Ethernet && i.Kind == "" && i.Master == 0 && len(i.HardwareAddr) == 6
}

// Network manages the interfaces. Create one with New; Run does the work.
type Network struct {
	config Config
	poked  chan struct{}

	mu      sync.Mutex
	state   State
	changed chan struct{}
	servers map[int]*servers // by the interface's index
}

// New returns a Network that hasn't begun.
func New(config Config) *Network {
	if config.Manage == nil {
		config.Manage = Physical
	}
	return &Network{
		config: config, poked: make(chan struct{}, 1),
		changed: make(chan struct{}), servers: map[int]*servers{},
	}
}

// State returns what is known now, and a channel that is closed when that has
// changed.
func (n *Network) State() (State, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.state, n.changed
}

// poke has the table looked at again.
func (n *Network) poke() {
	select {
	case n.poked <- struct{}{}:
	default:
	}
}

// Run manages the interfaces until ctx is done, and leaves them as they are
// then: a pcd that is started again finds them working.
func (n *Network) Run(ctx context.Context) error {
	table, err := link.Open()
	if err != nil {
		return err
	}
	defer table.Close()
	ctx, stop := context.WithCancel(ctx)
	watching := make(chan error, 1)
	go func() { watching <- table.Watch(ctx, n.poke) }()
	devices := map[int]*device{}
	defer func() {
		stop()
		for _, d := range devices {
			<-d.ended
		}
	}()
	// Only wakes the loop when a router's name server has expired.
	expiry := time.NewTimer(0)
	defer expiry.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-watching:
			return err
		case <-n.poked:
		case <-expiry.C:
		}
		next, err := n.reconcile(ctx, table, devices)
		if err != nil {
			return err
		}
		if !next.IsZero() {
			expiry.Reset(max(time.Until(next), time.Second))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace):
		}
	}
}

// reconcile starts to manage new interfaces, tells the others what changed, and
// publishes the state. It returns when it must be called again.
func (n *Network) reconcile(ctx context.Context, table *link.Table, devices map[int]*device) (time.Time, error) {
	found, err := table.Interfaces()
	if err != nil {
		return time.Time{}, err
	}
	present := map[int]bool{}
	var interfaces []Interface
	for _, i := range found {
		if i.Name == "lo" && !i.Up {
			// Nothing else does it in a machine without other programs.
			if err := table.Up(i.Index); err != nil {
				n.config.Log.Warn("the loopback interface stays off", "err", err)
			}
		}
		if !n.config.Manage(i) {
			continue
		}
		present[i.Index] = true
		if d := devices[i.Index]; d == nil {
			devices[i.Index] = n.start(ctx, table, i)
		} else {
			d.observe(i)
		}
		interfaces = append(interfaces, n.describe(table, i))
	}
	for index, d := range devices {
		if !present[index] {
			d.stop()
			<-d.ended
			delete(devices, index)
			n.forget(index)
			n.forgetMTU(index)
		}
	}
	return n.publish(interfaces), nil
}

func (n *Network) describe(table *link.Table, i link.Interface) Interface {
	addresses, err := table.Addresses(i.Index)
	if err != nil {
		// The interface may be gone; the kernel tells when it is.
		n.config.Log.Debug("an interface's addresses can't be read", "interface", i.Name, "err", err)
	}
	return Interface{
		Index: i.Index, Name: i.Name, HardwareAddr: i.HardwareAddr.String(),
		Carrier: i.Carrier, MTU: i.MTU, Addresses: addresses,
	}
}

// learn changes what an interface's sources have named.
func (n *Network) learn(index int, change func(*servers)) {
	n.mu.Lock()
	if n.servers[index] == nil {
		n.servers[index] = &servers{}
	}
	change(n.servers[index])
	n.mu.Unlock()
	n.poke()
}

func (n *Network) forget(index int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.servers, index)
}

// publish makes the state known, if it has changed, and writes the name servers.
// It returns when a name server expires.
func (n *Network) publish(interfaces []Interface) (next time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	state := State{Interfaces: interfaces}
	for _, i := range interfaces {
		s := n.servers[i.Index]
		if s == nil {
			continue
		}
		if expires := s.expire(time.Now()); next.IsZero() || !expires.IsZero() && expires.Before(next) {
			next = expires
		}
		state.DNS, state.NTP = unique(state.DNS, s.dns()...), unique(state.NTP, s.ntp()...)
	}
	// The first time, the file may be there from a pcd before.
	if n.state.Interfaces == nil || !slices.Equal(state.DNS, n.state.DNS) {
		n.writeResolver(state.DNS)
	}
	if !state.equal(n.state) {
		n.state = state
		close(n.changed)
		n.changed = make(chan struct{})
	}
	return next
}

func (n *Network) writeResolver(servers []netip.Addr) {
	if err := resolver.Write(n.config.ResolvConf, servers); err != nil {
		n.config.Log.Error("names can't be looked up", "err", err)
		return
	}
	n.config.Log.Info("name servers", "servers", servers)
}

// String is for logs.
func (i Interface) String() string { return fmt.Sprintf("%s (%s)", i.Name, i.HardwareAddr) }
