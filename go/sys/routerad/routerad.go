// Package routerad listens to IPv6 routers (RFC 4861): which of the network's
// settings DHCP has, and which name servers there are (RFC 8106).
//
// Addresses, routes and the MTU that routers announce are the kernel's to take
// or to refuse; it does so by itself where accept_ra is set.
package routerad

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/mdlayher/ndp"
	"golang.org/x/net/ipv6"
)

const (
	// maxServers is how many name servers of one announcement are taken.
	maxServers = 8
	// maxSize is the size in bytes of what is read of one message.
	maxSize = 1500
	// solicitations and solicitPause say how often and at what pace routers are
	// asked to announce themselves (RFC 4861, section 10). Later they do so of
	// their own accord.
	solicitations = 3
	solicitPause  = 4 * time.Second
)

// An announcement (RFC 4861, section 4.2) and its options, in bytes.
const (
	headerSize  = 16
	flagsOffset = 5
	managedFlag = 0x80
	otherFlag   = 0x40
	// optionUnit is what the sizes of options are counted in.
	optionUnit = 8
	// prefixOption tells of a network (section 4.6.2).
	prefixOption = 3
	prefixSize   = 32
	prefixOffset = 16
)

// Advertisement is what a router has announced.
type Advertisement struct {
	// Router is its address on this link.
	Router netip.Addr
	// Managed says that DHCP gives addresses, Other that it has other settings.
	Managed, Other bool
	// DNS are name servers.
	DNS []Server
	// Networks are those that it says are on this link, or that addresses are to be
	// made of: the kernel has a route or more for each.
	Networks []netip.Prefix
}

// Server is a name server. Its address has a zone if it is of this link only.
type Server struct {
	Address netip.Addr
	// Lifetime is for how long it may be used; 0 means from now on not.
	Lifetime time.Duration
}

// Options are what Run works with.
type Options struct {
	// Interface is the interface's name.
	Interface string
	// Heard is called by Run for each announcement.
	Heard func(Advertisement)
	// Moved is sent on when the interface may be on another network: routers
	// are then asked again.
	Moved <-chan struct{}
}

// ErrMalformed is wrapped by Parse's errors.
var ErrMalformed = errors.New("no announcement of a router")

// Parse reads an announcement, given its sender, the hop limit that it arrived
// with, and the interface as the zone of addresses. 255 shows that no router has passed it on (RFC 4861, section
// 6.1.2).
//
// One with an option that is wrong in itself counts, since the kernel heeds it too,
// but names no servers.
func Parse(b []byte, sender netip.Addr, hopLimit int, zone string) (Advertisement, error) {
	if hopLimit != 255 || !sender.IsLinkLocalUnicast() {
		return Advertisement{}, fmt.Errorf("%w of this link", ErrMalformed)
	}
	if len(b) < headerSize || b[0] != byte(ipv6.ICMPTypeRouterAdvertisement) || b[1] != 0 {
		return Advertisement{}, ErrMalformed
	}
	a := Advertisement{
		Router: sender.WithZone(zone), Managed: b[flagsOffset]&managedFlag != 0, Other: b[flagsOffset]&otherFlag != 0,
		Networks: networks(b[headerSize:]),
	}
	message, err := ndp.ParseMessage(b)
	if err != nil {
		return a, nil
	}
	ra, ok := message.(*ndp.RouterAdvertisement)
	if !ok {
		return Advertisement{}, ErrMalformed
	}
	for _, option := range ra.Options {
		rdnss, ok := option.(*ndp.RecursiveDNSServer)
		if !ok {
			continue
		}
		for _, server := range rdnss.Servers {
			known := slices.ContainsFunc(a.DNS, func(s Server) bool { return s.Address.WithZone("") == server })
			if !usable(server) || known || len(a.DNS) == maxServers {
				continue
			}
			if server.IsLinkLocalUnicast() {
				server = server.WithZone(zone)
			}
			a.DNS = append(a.DNS, Server{Address: server, Lifetime: rdnss.Lifetime})
		}
	}
	return a, nil
}

// networks returns what the options of an announcement say of networks. It passes
// over all other options, as the kernel does, whatever is in them.
func networks(options []byte) []netip.Prefix {
	var all []netip.Prefix
	for len(options) >= optionUnit {
		size := int(options[1]) * optionUnit
		if size == 0 || size > len(options) {
			break
		}
		if options[0] == prefixOption && size == prefixSize {
			addr := netip.AddrFrom16([16]byte(options[prefixOffset : prefixOffset+16]))
			if p, err := addr.Prefix(int(options[2])); err == nil && !slices.Contains(all, p) {
				all = append(all, p)
			}
		}
		options = options[size:]
	}
	return all
}

// usable tells whether an address can be a name server's.
func usable(a netip.Addr) bool {
	return a.Is6() && !a.Is4In6() && !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}

// Run listens until ctx is done. It fails at once where the interface has no
// address of its link yet.
func Run(ctx context.Context, o Options) error {
	ifi, err := net.InterfaceByName(o.Interface)
	if err != nil {
		return fmt.Errorf("listen to routers on %s: %w", o.Interface, err)
	}
	// Go's net package remembers for a minute which index a name has had. The
	// number is right even when the card was just exchanged.
	numbered := *ifi
	numbered.Name = strconv.Itoa(ifi.Index)
	conn, _, err := ndp.Listen(&numbered, ndp.LinkLocal)
	if err != nil {
		return fmt.Errorf("listen to routers on %s: %w", o.Interface, err)
	}
	defer func() { _ = conn.Close() }()
	var filter ipv6.ICMPFilter
	filter.SetAll(true)
	filter.Accept(ipv6.ICMPTypeRouterAdvertisement)
	err = errors.Join(conn.SetICMPFilter(&filter), conn.SetControlMessage(ipv6.FlagHopLimit, true),
		conn.JoinGroup(netip.IPv6LinkLocalAllNodes()))
	if err != nil {
		return fmt.Errorf("listen to routers on %s: %w", o.Interface, err)
	}
	ended := make(chan error, 1)
	heard := make(chan Advertisement)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() { ended <- receive(ctx, conn, o.Interface, heard) }()
	return solicit(ctx, conn, o, heard, ended)
}

// solicit asks routers to announce themselves, and passes on what is heard.
func solicit(ctx context.Context, conn *ndp.Conn, o Options, heard <-chan Advertisement, ended <-chan error) error {
	left := solicitations
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return fmt.Errorf("listen to routers on %s: %w", o.Interface, err)
		case a := <-heard:
			left = 0
			o.Heard(a)
		case <-o.Moved:
			left = solicitations
			next.Reset(0)
		case <-next.C:
			if left == 0 {
				continue
			}
			left--
			// It may well fail while there is no carrier; the next one won't.
			_ = conn.WriteTo(&ndp.RouterSolicitation{}, nil, netip.IPv6LinkLocalAllRouters())
			next.Reset(solicitPause)
		}
	}
}

// receive reads announcements until the connection is closed or ctx is done.
func receive(ctx context.Context, conn *ndp.Conn, zone string, heard chan<- Advertisement) error {
	b := make([]byte, maxSize)
	for ctx.Err() == nil {
		// So that ctx is looked at.
		if err := conn.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
			return err
		}
		n, control, sender, err := conn.ReadRaw(b)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		if err != nil {
			return err
		}
		if control == nil {
			continue
		}
		a, err := Parse(b[:n], sender, control.HopLimit, zone)
		if err != nil {
			continue
		}
		select {
		case heard <- a:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
