// Package link sets up network interfaces, their addresses and their routes, and
// tells when they change, through the kernel's rtnetlink.
package link

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interface is a network interface as the kernel sees it.
type Interface struct {
	Index        int
	Name         string
	HardwareAddr net.HardwareAddr
	// MTU is the largest packet in bytes that it sends.
	MTU int
	// Up is whether it was switched on, and Carrier whether it also has a
	// connection: a cable, or a host's switch.
	Up, Carrier bool
	// Ethernet is whether it sends Ethernet frames; the loopback doesn't.
	Ethernet bool
	// Kind is "" for a device, and what software makes of the interface
	// otherwise, such as "veth", "bridge" or "wireguard".
	Kind string
	// Master is the index of the interface that this one is a part of, or 0.
	// Under Hyper-V the fast path of an interface is one.
	Master int
}

// Route is a way to somewhere.
type Route struct {
	// Index is the interface's.
	Index       int
	Destination netip.Prefix
	// Gateway isn't valid for what is reached directly.
	Gateway netip.Addr
	// Source is the address that packets get which have none yet.
	Source netip.Addr
	// Metric orders routes to the same destination: the least wins.
	Metric int
	// MTU in bytes, 0 for the interface's.
	MTU int
	// OnLink says that the gateway is reached directly, whatever the
	// interface's own network is.
	OnLink bool
}

// protocol marks the routes that were set here: RTPROT_DHCP.
const protocol = unix.RTPROT_DHCP

// Table is the kernel's table of interfaces. Its methods may be called from
// several goroutines at once.
type Table struct {
	handle *netlink.Handle
}

// Open opens the table of the network namespace of the calling thread.
func Open() (*Table, error) {
	handle, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err == nil {
		err = handle.SetSocketTimeout(10 * time.Second)
	}
	if err != nil {
		return nil, fmt.Errorf("open the kernel's table of network interfaces: %w", err)
	}
	return &Table{handle: handle}, nil
}

// Close closes the table.
func (t *Table) Close() { t.handle.Close() }

// Interfaces returns all of them, in the kernel's order.
func (t *Table) Interfaces() ([]Interface, error) {
	links, err := t.handle.LinkList()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	all := make([]Interface, 0, len(links))
	for _, l := range links {
		all = append(all, describe(l))
	}
	return all, nil
}

func describe(l netlink.Link) Interface {
	a := l.Attrs()
	i := Interface{
		Index: a.Index, Name: a.Name, HardwareAddr: a.HardwareAddr, MTU: a.MTU,
		Up:       a.RawFlags&unix.IFF_UP != 0,
		Carrier:  a.RawFlags&unix.IFF_LOWER_UP != 0,
		Ethernet: a.EncapType == "ether",
		Master:   a.MasterIndex,
	}
	if kind := l.Type(); kind != "device" {
		i.Kind = kind
	}
	return i
}

// byIndex is all that the module needs to know of an interface.
func byIndex(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
}

// Up switches an interface on.
func (t *Table) Up(index int) error {
	if err := t.handle.LinkSetUp(byIndex(index)); err != nil {
		return fmt.Errorf("switch network interface %d on: %w", index, err)
	}
	return nil
}

// SetMTU sets the largest packet, in bytes, that an interface sends.
func (t *Table) SetMTU(index, mtu int) error {
	if err := t.handle.LinkSetMTU(byIndex(index), mtu); err != nil {
		return fmt.Errorf("set the MTU of network interface %d to %d: %w", index, mtu, err)
	}
	return nil
}

// Addresses returns an interface's addresses that are in use: not those that are
// still, or in vain, checked for being unique.
func (t *Table) Addresses(index int) ([]netip.Prefix, error) {
	found, err := t.handle.AddrList(byIndex(index), netlink.FAMILY_ALL)
	if err != nil {
		return nil, fmt.Errorf("list the addresses of network interface %d: %w", index, err)
	}
	var addresses []netip.Prefix
	for _, a := range found {
		if a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0 {
			continue
		}
		if p, ok := fromNet(a.IPNet); ok {
			addresses = append(addresses, p)
		}
	}
	return addresses, nil
}

// SetAddress gives an interface an address for a time, after which the kernel
// takes it away by itself, or changes the times of one that it has. The address
// brings no route with it. Times are rounded to seconds; math.MaxInt64 is for
// ever.
func (t *Table) SetAddress(index int, address netip.Prefix, valid, preferred time.Duration) error {
	a := &netlink.Addr{
		IPNet: toNet(address), Flags: unix.IFA_F_NOPREFIXROUTE,
		ValidLft: seconds(valid), PreferedLft: seconds(preferred),
	}
	if address.Addr().Is4() && address.Bits() < 31 {
		a.Broadcast = net.IP(broadcast(address).AsSlice())
	}
	if err := t.handle.AddrReplace(byIndex(index), a); err != nil {
		return fmt.Errorf("give network interface %d the address %s: %w", index, address, err)
	}
	return nil
}

// seconds is a time as the kernel takes it; it never becomes 0, which the module
// takes for no time given.
func seconds(d time.Duration) int {
	s := int64(d / time.Second)
	return int(min(max(s, 1), math.MaxUint32-1))
}

// broadcast returns the last address of an IPv4 network.
func broadcast(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	return netip.AddrFrom4(b)
}

// RemoveAddress takes an address away. It may be gone.
func (t *Table) RemoveAddress(index int, address netip.Prefix) error {
	err := t.handle.AddrDel(byIndex(index), &netlink.Addr{IPNet: toNet(address)})
	if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("take the address %s from network interface %d: %w", address, index, err)
	}
	return nil
}

// Routes returns the IPv4 routes of an interface that were set here.
func (t *Table) Routes(index int) ([]Route, error) {
	found, err := t.handle.RouteListFiltered(netlink.FAMILY_V4,
		&netlink.Route{LinkIndex: index, Protocol: protocol}, netlink.RT_FILTER_OIF|netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		return nil, fmt.Errorf("list the routes of network interface %d: %w", index, err)
	}
	var routes []Route
	for _, r := range found {
		route := Route{Index: r.LinkIndex, Metric: r.Priority, MTU: r.MTU, OnLink: r.Flags&unix.RTNH_F_ONLINK != 0}
		route.Gateway, route.Source = fromIP(r.Gw), fromIP(r.Src)
		route.Destination = netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if p, ok := fromNet(r.Dst); ok {
			route.Destination = p
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// SetRoute sets a route, in place of one to the same destination with the same
// metric.
func (t *Table) SetRoute(r Route) error {
	if err := t.handle.RouteReplace(r.netlink()); err != nil {
		return fmt.Errorf("set the route to %s by network interface %d: %w", r.Destination, r.Index, err)
	}
	return nil
}

// RemoveRoute removes a route. It may be gone.
func (t *Table) RemoveRoute(r Route) error {
	err := t.handle.RouteDel(r.netlink())
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove the route to %s by network interface %d: %w", r.Destination, r.Index, err)
	}
	return nil
}

func (r Route) netlink() *netlink.Route {
	n := &netlink.Route{
		LinkIndex: r.Index, Dst: toNet(r.Destination), Priority: r.Metric, MTU: r.MTU,
		Protocol: protocol, Scope: netlink.SCOPE_LINK,
	}
	if r.Source.IsValid() {
		n.Src = r.Source.AsSlice()
	}
	if r.Gateway.IsValid() {
		n.Gw, n.Scope = r.Gateway.AsSlice(), netlink.SCOPE_UNIVERSE
		if r.OnLink {
			n.Flags = int(netlink.FLAG_ONLINK)
		}
	}
	return n
}

// Watch calls a function after every change of interfaces or addresses, until
// ctx is done or the kernel says that changes were lost. Changes that follow
// closely on each other are told once. Whoever watches looks at the table
// afterwards: the function isn't told what changed.
func (t *Table) Watch(ctx context.Context, changed func()) error {
	done := make(chan struct{})
	defer close(done)
	failures := make(chan error, 2)
	fail := func(err error) {
		select {
		case failures <- err:
		default:
		}
	}
	links := make(chan netlink.LinkUpdate, 64)
	if err := netlink.LinkSubscribeWithOptions(links, done, netlink.LinkSubscribeOptions{ErrorCallback: fail}); err != nil {
		return fmt.Errorf("watch the network interfaces: %w", err)
	}
	addresses := make(chan netlink.AddrUpdate, 64)
	if err := netlink.AddrSubscribeWithOptions(addresses, done, netlink.AddrSubscribeOptions{ErrorCallback: fail}); err != nil {
		go drain(links)
		return fmt.Errorf("watch the network's addresses: %w", err)
	}
	// The module blocks until somebody takes what it has.
	defer func() { go drain(links); go drain(addresses) }()
	changed()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failures:
			return fmt.Errorf("watch the network interfaces: %w", err)
		case _, open := <-links:
			if !open {
				return errors.New("watch the network interfaces: the kernel closed the connection")
			}
		case _, open := <-addresses:
			if !open {
				return errors.New("watch the network's addresses: the kernel closed the connection")
			}
		}
		for more := true; more; {
			select {
			case _, open := <-links:
				more = open
			case _, open := <-addresses:
				more = open
			default:
				more = false
			}
		}
		changed()
	}
}

func drain[T any](updates <-chan T) {
	for range updates {
	}
}

func toNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

func fromNet(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr := fromIP(n.IP)
	ones, bits := n.Mask.Size()
	if !addr.IsValid() || bits != addr.BitLen() {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr, ones), true
}

func fromIP(ip net.IP) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
