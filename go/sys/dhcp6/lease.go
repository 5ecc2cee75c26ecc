// Package dhcp6 is a client for DHCP over IPv6 (RFC 8415): it gets addresses for
// an interface and keeps them, or, where routers give addresses, gets the other
// settings alone.
//
// Anybody on the network can answer as a server. What a server says is
// therefore bounded and checked before it is believed: see Parse. Messages are
// read and written by github.com/insomniacslk/dhcp.
package dhcp6

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"powercloud.unidatum.com/go/sys/lease"
)

const (
	// MinLifetime is the shortest valid lifetime of an address that is taken: a
	// server could otherwise keep a node busy with nothing but renewing.
	MinLifetime = 10 * time.Second
	// maxAddresses and maxServers bound what a server may fill a node's tables
	// with.
	maxAddresses = 8
	maxServers   = 8
	// infinite is a lifetime that never ends, in seconds.
	infinite = (1<<32 - 1) * time.Second
	// defaultRefresh and leastRefresh are how long settings without addresses
	// count (RFC 8415, section 21.23).
	defaultRefresh = 24 * time.Hour
	leastRefresh   = 10 * time.Minute
)

// Lease is what a server has granted.
type Lease struct {
	// Addresses are the interface's; none where only settings were asked for.
	Addresses []Address
	// DNS and NTP are the servers to ask, the preferred ones first. One of this
	// link only has the interface as its zone.
	DNS, NTP []netip.Addr
	// Times say when the last address ends, or the settings do, and when to ask
	// for more.
	lease.Times
	// Ignored says in words what in the server's answer wasn't believed.
	Ignored []string

	server dhcpv6.DUID
	iana   *dhcpv6.OptIANA
}

// Address is an address and for how long it may be used: Preferred for new
// connections, Valid for others.
type Address struct {
	Address          netip.Addr
	Preferred, Valid time.Duration
}

var (
	// ErrUnusable is wrapped by Parse's errors.
	ErrUnusable = errors.New("the DHCPv6 server's answer can't be used")
	// errRefused says that the server doesn't know the addresses, takes them back, or
	// that they can't be used on this network.
	errRefused = errors.New("the DHCPv6 server refuses the addresses")
)

// Parse takes from a server's answer what can be right. The zone is the
// interface's name. An answer about addresses must have at least one good one. An
// address that it doesn't have, or has for no time, may not be used any more.
func Parse(answer *dhcpv6.Message, zone string, addresses bool) (*Lease, error) {
	l := &Lease{server: answer.Options.ServerID()}
	if l.server == nil {
		return nil, fmt.Errorf("%w: it names no server", ErrUnusable)
	}
	if status := answer.Options.Status(); status != nil && status.StatusCode != iana.StatusSuccess {
		return nil, refusal(status.StatusCode)
	}
	l.DNS = l.servers("DNS", zone, answer.Options.DNS())
	l.NTP = l.servers("NTP", zone, slices.Concat(answer.Options.NTPServers(), answer.Options.SNTP()))
	if !addresses {
		// One refresh that finds no server doesn't take the settings away.
		l.Renew = max(answer.Options.InformationRefreshTime(defaultRefresh), leastRefresh)
		l.Rebind, l.Duration = l.Renew, 2*l.Renew
		return l, nil
	}
	l.iana = answer.Options.OneIANA()
	if l.iana == nil {
		return nil, fmt.Errorf("%w: it has no addresses", ErrUnusable)
	}
	if status := l.iana.Options.Status(); status != nil && status.StatusCode != iana.StatusSuccess {
		return nil, refusal(status.StatusCode)
	}
	withdrawn := l.parseAddresses()
	if len(l.Addresses) == 0 && withdrawn > 0 {
		return nil, fmt.Errorf("%w: none may be used any more", errRefused)
	}
	if len(l.Addresses) == 0 {
		return nil, fmt.Errorf("%w: it has no good address (%v)", ErrUnusable, l.Ignored)
	}
	l.parseTimes()
	return l, nil
}

// refusal makes an error of a server's status.
func refusal(code iana.StatusCode) error {
	if code == iana.StatusNoBinding || code == iana.StatusNotOnLink || code == iana.StatusNoAddrsAvail {
		return fmt.Errorf("%w: %v", errRefused, code)
	}
	return fmt.Errorf("%w: its status is %v", ErrUnusable, code)
}

// parseAddresses takes the good addresses, and returns how many the server takes back:
// those with a valid lifetime of 0 (RFC 8415, section 18.2.10.1).
func (l *Lease) parseAddresses() (withdrawn int) {
	for _, a := range l.iana.Options.Addresses() {
		addr, ok := netip.AddrFromSlice(a.IPv6Addr)
		switch {
		case len(l.Addresses) == maxAddresses:
			l.ignore("more than %d addresses", maxAddresses)
			return withdrawn
		case !ok || !unicast(addr) || addr.IsLinkLocalUnicast():
			l.ignore("the address %v", a.IPv6Addr)
		case a.ValidLifetime == 0:
			withdrawn++
		case a.ValidLifetime < MinLifetime || a.PreferredLifetime > a.ValidLifetime:
			l.ignore("the address %v: it may be used for %v, for new connections for %v", addr, a.ValidLifetime, a.PreferredLifetime)
		default:
			l.Addresses = append(l.Addresses, Address{addr, a.PreferredLifetime, a.ValidLifetime})
		}
	}
	return withdrawn
}

func (l *Lease) parseTimes() {
	shortest := infinite
	for _, a := range l.Addresses {
		l.Duration = max(l.Duration, a.Valid)
		if a.Preferred > 0 {
			shortest = min(shortest, a.Preferred)
		}
	}
	shortest = min(shortest, l.Duration)
	l.Renew, l.Rebind = l.iana.T1, l.iana.T2
	if l.Rebind <= 0 || l.Rebind > l.Duration {
		l.Rebind = shortest / 5 * 4
	}
	if l.Renew <= 0 || l.Renew > l.Rebind {
		l.Renew = min(shortest/2, l.Rebind)
	}
	// A renewal time of a second would be as bad as a lifetime of one.
	l.Renew = max(l.Renew, MinLifetime/2)
	l.Rebind = max(l.Rebind, l.Renew)
}

// servers returns the addresses that can be servers.
func (l *Lease) servers(kind, zone string, ips []net.IP) []netip.Addr {
	if len(ips) > maxServers {
		l.ignore("%d of %d %s servers", len(ips)-maxServers, len(ips), kind)
		ips = ips[:maxServers]
	}
	var servers []netip.Addr
	for _, ip := range ips {
		addr, ok := netip.AddrFromSlice(ip)
		if !ok || !unicast(addr) {
			l.ignore("the %s server %v", kind, ip)
			continue
		}
		if addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(zone)
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

// unicast tells whether an address can be a machine's.
func unicast(a netip.Addr) bool {
	return a.Is6() && !a.Is4In6() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}
