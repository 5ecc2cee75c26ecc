package network

import (
	"net/netip"
	"slices"
	"time"
)

// State is what is known of the network at one moment.
type State struct {
	// Interfaces are those that pcd manages, the preferred ones first.
	Interfaces []Interface
	// DNS and NTP are the servers to ask, over all interfaces, the preferred
	// ones first.
	DNS, NTP []netip.Addr
}

// Interface is one network interface.
type Interface struct {
	Index        int
	Name         string
	HardwareAddr string
	// Carrier is whether it is connected to something.
	Carrier bool
	// MTU is the largest packet in bytes that it sends.
	MTU int
	// Addresses are those in use, with their networks' sizes.
	Addresses []netip.Prefix
}

// Addresses returns the addresses at which others may reach this machine: not
// those of a link only.
func (s State) Addresses() []netip.Addr {
	var addresses []netip.Addr
	for _, i := range s.Interfaces {
		for _, p := range i.Addresses {
			if !p.Addr().IsLinkLocalUnicast() {
				addresses = append(addresses, p.Addr())
			}
		}
	}
	return addresses
}

// equal tells whether nothing has changed.
func (s State) equal(o State) bool {
	return slices.Equal(s.DNS, o.DNS) && slices.Equal(s.NTP, o.NTP) &&
		slices.EqualFunc(s.Interfaces, o.Interfaces, func(a, b Interface) bool {
			return a.Index == b.Index && a.Name == b.Name && a.HardwareAddr == b.HardwareAddr &&
				a.Carrier == b.Carrier && a.MTU == b.MTU && slices.Equal(a.Addresses, b.Addresses)
		})
}

// servers are what the sources of one interface have named.
type servers struct {
	dhcpDNS, dhcpNTP   []netip.Addr
	dhcp6DNS, dhcp6NTP []netip.Addr
	// routerDNS are the routers' name servers with when they end, in the order
	// in which they were announced first.
	routerDNS []expiring
}

type expiring struct {
	address netip.Addr
	until   time.Time
}

// maxRouterServers is how many name servers of routers are remembered for an
// interface, whatever number of routers there is.
const maxRouterServers = 8

// announce takes a router's name server with its lifetime.
func (s *servers) announce(address netip.Addr, lifetime time.Duration, now time.Time) {
	i := slices.IndexFunc(s.routerDNS, func(e expiring) bool { return e.address == address })
	switch {
	case lifetime <= 0 && i >= 0:
		s.routerDNS = slices.Delete(s.routerDNS, i, i+1)
	case lifetime <= 0:
	case i >= 0:
		s.routerDNS[i].until = now.Add(lifetime)
	case len(s.routerDNS) < maxRouterServers:
		s.routerDNS = append(s.routerDNS, expiring{address, now.Add(lifetime)})
	}
}

// expire forgets the routers' name servers whose time is over, and returns when
// the next one's is; the zero time when there is none.
func (s *servers) expire(now time.Time) (next time.Time) {
	s.routerDNS = slices.DeleteFunc(s.routerDNS, func(e expiring) bool { return !e.until.After(now) })
	for _, e := range s.routerDNS {
		if next.IsZero() || e.until.Before(next) {
			next = e.until
		}
	}
	return next
}

// dns returns the interface's name servers, each once. One of each source comes
// first, so that both protocols are among the few that a resolver reads.
func (s *servers) dns() []netip.Addr {
	routers := make([]netip.Addr, 0, len(s.routerDNS))
	for _, e := range s.routerDNS {
		routers = append(routers, e.address)
	}
	var all []netip.Addr
	sources := [][]netip.Addr{s.dhcpDNS, s.dhcp6DNS, routers}
	for i := range maxRouterServers {
		for _, source := range sources {
			if i < len(source) {
				all = unique(all, source[i])
			}
		}
	}
	return all
}

func (s *servers) ntp() []netip.Addr {
	return unique(unique(nil, s.dhcpNTP...), s.dhcp6NTP...)
}

// unique appends what isn't there yet.
func unique(list []netip.Addr, more ...netip.Addr) []netip.Addr {
	for _, a := range more {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}
