// Package dhcp is a client for DHCP over IPv4 (RFC 2131): it gets an address for
// an interface, keeps it, and tells when it is lost.
//
// Anybody on the network can answer as a server. What a server says is
// therefore bounded and checked before it is believed: see Parse. Messages are
// read and written by github.com/insomniacslk/dhcp.
package dhcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"

	"powercloud.unidatum.com/go/sys/lease"
)

const (
	// MinLease is the shortest lease that is taken: a server could otherwise
	// keep a node busy with nothing but renewing.
	MinLease = 10 * time.Second
	// MinMTU is the least MTU in bytes that a server may set (RFC 791).
	MinMTU = 576
	// maxRoutes, maxServers bound what a server may fill a node's tables with.
	maxRoutes  = 64
	maxServers = 8
)

// Lease is what a server has granted.
type Lease struct {
	// Address is the interface's, with the size of its network.
	Address netip.Prefix
	// Server is who granted it.
	Server netip.Addr
	// Routes are the ways out, the default route among them.
	Routes []Route
	// DNS and NTP are the servers to ask, the preferred ones first.
	DNS, NTP []netip.Addr
	// MTU in bytes; 0 when the server said nothing that can be right.
	MTU int
	// Times say how long the address may be used, and when to ask for more.
	lease.Times
	// Ignored says in words what in the server's answer wasn't believed.
	Ignored []string

	ack *dhcpv4.DHCPv4
}

// Route is a way that a server names.
type Route struct {
	Destination netip.Prefix
	// Gateway isn't valid for what is reached directly.
	Gateway netip.Addr
	// OnLink says that the gateway lies outside of the interface's network but
	// is reached directly. Some clouds do that, with a network of one address.
	OnLink bool
}

// ErrUnusable is wrapped by Parse's errors.
var ErrUnusable = errors.New("the DHCP server's answer can't be used")

// Parse takes from a server's answer what can be right.
//
// Without a good address, server and time, the answer is refused. A gateway must
// lie in the network of the address or be declared to be reached directly;
// nothing may be a loopback, multicast or reserved address; what is wrong is
// left out and named in Ignored. A name, a domain or a search list isn't taken
// from the network: they would decide what the node's own names mean.
func Parse(answer *dhcpv4.DHCPv4) (*Lease, error) {
	l := &Lease{ack: answer}
	if err := l.parseAddress(answer); err != nil {
		return nil, err
	}
	if err := l.parseTimes(answer); err != nil {
		return nil, err
	}
	l.parseRoutes(answer)
	l.parseMTU(answer)
	l.DNS = l.servers("DNS", answer.DNS())
	l.NTP = l.servers("NTP", answer.NTPServers())
	return l, nil
}

func (l *Lease) parseAddress(answer *dhcpv4.DHCPv4) error {
	addr, ok := unicast(answer.YourIPAddr)
	if !ok {
		return fmt.Errorf("%w: %v is no address for an interface", ErrUnusable, answer.YourIPAddr)
	}
	bits := addr.AsSlice()
	ones := 24
	if answer.Options.Has(dhcpv4.OptionSubnetMask) {
		mask := answer.SubnetMask()
		var size int
		ones, size = mask.Size()
		if size != 32 || ones < 8 {
			return fmt.Errorf("%w: its subnet mask is %v", ErrUnusable, net.IP(mask))
		}
	} else if bits[0] < 128 {
		ones = 8
	} else if bits[0] < 192 {
		ones = 16
	}
	l.Address = netip.PrefixFrom(addr, ones)
	if ones < 31 && (addr == l.Address.Masked().Addr() || addr == last(l.Address)) {
		return fmt.Errorf("%w: %s is the network's own address, or its broadcast address", ErrUnusable, l.Address)
	}
	if l.Server, ok = unicast(answer.ServerIdentifier()); !ok {
		return fmt.Errorf("%w: it names no server", ErrUnusable)
	}
	return nil
}

func (l *Lease) parseTimes(answer *dhcpv4.DHCPv4) error {
	l.Duration = answer.IPAddressLeaseTime(0)
	if l.Duration < MinLease {
		return fmt.Errorf("%w: a lease of %v is too short", ErrUnusable, l.Duration)
	}
	l.Renew, l.Rebind = answer.IPAddressRenewalTime(0), answer.IPAddressRebindingTime(0)
	if l.Rebind <= 0 || l.Rebind >= l.Duration {
		l.Rebind = l.Duration / 8 * 7
	}
	if l.Renew <= 0 || l.Renew >= l.Rebind {
		l.Renew = min(l.Duration/2, l.Rebind/8*7)
	}
	// A renewal time of a second would be as bad as a lease of one.
	l.Renew = max(l.Renew, MinLease/2)
	l.Rebind = max(l.Rebind, l.Renew)
	return nil
}

// parseRoutes takes the classless routes, and only without them the gateway
// (RFC 3442).
func (l *Lease) parseRoutes(answer *dhcpv4.DHCPv4) {
	if answer.Options.Has(dhcpv4.OptionClasslessStaticRoute) {
		routes := answer.ClasslessStaticRoute()
		if len(routes) == 0 {
			l.ignore("its classless routes: they aren't well formed")
		}
		if len(routes) > maxRoutes {
			l.ignore("%d of %d routes", len(routes)-maxRoutes, len(routes))
			routes = routes[:maxRoutes]
		}
		// What is reached directly first: gateways may lie there.
		for _, direct := range []bool{true, false} {
			for _, r := range routes {
				if isDirect := r.Router == nil || r.Router.IsUnspecified(); isDirect == direct {
					l.addRoute(r)
				}
			}
		}
		return
	}
	for _, router := range first(answer.Router(), maxServers) {
		r := &dhcpv4.Route{Dest: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Router: router}
		if before := len(l.Routes); true {
			if l.addRoute(r); len(l.Routes) > before {
				return
			}
		}
	}
}

// addRoute checks and adds a route.
func (l *Lease) addRoute(r *dhcpv4.Route) {
	if r == nil || r.Dest == nil {
		return
	}
	base, ok := netip.AddrFromSlice(r.Dest.IP.To4())
	ones, size := r.Dest.Mask.Size()
	destination := netip.PrefixFrom(base, ones)
	if !ok || size != 32 || !reachable(destination) {
		l.ignore("a route to %v", r.Dest)
		return
	}
	route := Route{Destination: destination.Masked()}
	if r.Router != nil && !r.Router.IsUnspecified() {
		if route.Gateway, ok = unicast(r.Router); !ok || route.Gateway == l.Address.Addr() {
			l.ignore("the gateway %v", r.Router)
			return
		}
		if !l.inside(route.Gateway) {
			if !l.direct(route.Gateway) && l.Address.Bits() != 32 {
				l.ignore("the gateway %v: it isn't in the network %v", r.Router, l.Address.Masked())
				return
			}
			route.OnLink = true
		}
	} else if ones == 0 {
		l.ignore("a default route without a gateway")
		return
	}
	if !slices.ContainsFunc(l.Routes, func(o Route) bool { return o.Destination == route.Destination }) {
		l.Routes = append(l.Routes, route)
	}
}

// inside tells whether an address is in the interface's network, and neither its
// own address nor its broadcast address.
func (l *Lease) inside(a netip.Addr) bool {
	if !l.Address.Contains(a) {
		return false
	}
	return l.Address.Bits() >= 31 || a != l.Address.Masked().Addr() && a != last(l.Address)
}

// direct tells whether one of the routes without a gateway leads to an address.
func (l *Lease) direct(a netip.Addr) bool {
	return slices.ContainsFunc(l.Routes, func(r Route) bool { return !r.Gateway.IsValid() && r.Destination.Contains(a) })
}

func (l *Lease) parseMTU(answer *dhcpv4.DHCPv4) {
	value := answer.Options.Get(dhcpv4.OptionInterfaceMTU)
	if value == nil {
		return
	}
	if len(value) != 2 || int(value[0])<<8|int(value[1]) < MinMTU {
		l.ignore("the MTU: it must be at least %d", MinMTU)
		return
	}
	l.MTU = int(value[0])<<8 | int(value[1])
}

// servers returns the addresses that can be servers.
func (l *Lease) servers(kind string, ips []net.IP) []netip.Addr {
	if len(ips) > maxServers {
		l.ignore("%d of %d %s servers", len(ips)-maxServers, len(ips), kind)
	}
	var servers []netip.Addr
	for _, ip := range first(ips, maxServers) {
		addr, ok := unicast(ip)
		if !ok || addr == l.Address.Addr() {
			l.ignore("the %s server %v", kind, ip)
			continue
		}
		if !slices.Contains(servers, addr) {
			servers = append(servers, addr)
		}
	}
	return servers
}

func (l *Lease) ignore(format string, arguments ...any) {
	l.Ignored = append(l.Ignored, fmt.Sprintf(format, arguments...))
}

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// special are the IPv4 networks that no interface, gateway or server is in
// (RFC 6890).
var special = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("240.0.0.0/4"),
}

// unicast tells whether an address can be a machine's.
func unicast(ip net.IP) (netip.Addr, bool) {
	addr, ok := netip.AddrFromSlice(ip.To4())
	if !ok || slices.ContainsFunc(special, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return netip.Addr{}, false
	}
	return addr, true
}

// reachable tells whether a network can be reached by a route: any but the
// special ones. Large ones, the default route most of all, may hold those.
func reachable(p netip.Prefix) bool {
	return !slices.ContainsFunc(special, func(s netip.Prefix) bool {
		return s.Contains(p.Addr()) && p.Bits() >= s.Bits()
	})
}

// last returns a network's last address.
func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}
