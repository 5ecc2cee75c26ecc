package network

import (
	"net/netip"
	"slices"

	"powercloud.unidatum.com/go/sys/dhcp"
	"powercloud.unidatum.com/go/sys/link"
)

// applyLease makes the interface's IPv4 what a lease says, and nothing else; with
// nil, nothing.
func (d *device) applyLease(l *dhcp.Lease) {
	if l == nil {
		d.setRoutes(nil)
		d.removeOthers(netip.Prefix{})
		d.restoreMTU()
		d.network.learn(d.index, func(s *servers) { s.dhcpDNS, s.dhcpNTP = nil, nil })
		return
	}
	routeMTU := d.setMTU(l.MTU)
	// The others go first: with the oldest address of a network, which a pcd before
	// may have left, the kernel takes away every newer one of that network.
	d.removeOthers(l.Address)
	if err := d.table.SetAddress(d.index, l.Address, l.Duration, l.Duration); err != nil {
		d.log.Error("the address by DHCP can't be used", "err", err)
		return
	}
	d.setRoutes(d.routes(l, routeMTU))
	d.log.Info("address by DHCP", "address", l.Address, "server", l.Server, "lease", l.Duration, "routes", len(l.Routes))
	d.network.learn(d.index, func(s *servers) { s.dhcpDNS, s.dhcpNTP = l.DNS, l.NTP })
}

// routes returns all that a lease needs in the order in which they can be set:
// the interface's own network, what is reached directly, and the rest.
func (d *device) routes(l *dhcp.Lease, mtu int) []link.Route {
	var routes []link.Route
	add := func(destination netip.Prefix, gateway netip.Addr, onLink bool) {
		routes = append(routes, link.Route{
			Index: d.index, Destination: destination, Gateway: gateway, OnLink: onLink,
			Source: l.Address.Addr(), Metric: d.metric(), MTU: mtu,
		})
	}
	if l.Address.Bits() < 32 {
		add(l.Address.Masked(), netip.Addr{}, false)
	}
	for _, direct := range []bool{true, false} {
		for _, r := range l.Routes {
			if direct == !r.Gateway.IsValid() && !sameDestination(routes, r.Destination) {
				add(r.Destination, r.Gateway, r.OnLink)
			}
		}
	}
	return routes
}

func sameDestination(routes []link.Route, p netip.Prefix) bool {
	return slices.ContainsFunc(routes, func(r link.Route) bool { return r.Destination == p })
}

// setRoutes makes the interface's routes by DHCP these ones.
func (d *device) setRoutes(wanted []link.Route) {
	for _, r := range wanted {
		if err := d.table.SetRoute(r); err != nil {
			d.log.Error("a route by DHCP can't be used", "err", err)
		}
	}
	present, err := d.table.Routes(d.index)
	if err != nil {
		d.log.Warn("routes that are over may stay", "err", err)
		return
	}
	for _, r := range present {
		if r.Metric == d.metric() && sameDestination(wanted, r.Destination) {
			continue
		}
		if err := d.table.RemoveRoute(r); err != nil {
			d.log.Warn("a route that is over stays", "err", err)
		}
	}
}

// removeOthers takes every IPv4 address away but one.
func (d *device) removeOthers(keep netip.Prefix) {
	addresses, err := d.table.Addresses(d.index)
	if err != nil {
		d.log.Warn("addresses that are over may stay", "err", err)
		return
	}
	for _, a := range addresses {
		if a.Addr().Is4() && a != keep {
			if err := d.table.RemoveAddress(d.index, a); err != nil {
				d.log.Warn("an address that is over stays", "err", err)
			}
		}
	}
}
