package dhcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/nclient4"
	"github.com/mdlayher/packet"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

const (
	// answerTimeout is how long the first request of an exchange waits; the
	// module doubles it for each of the retries (RFC 2131, section 4.1).
	answerTimeout = 2 * time.Second
	retries       = 3
	clientPort    = 68
	serverPort    = 67
)

// errRefused is what a server's DHCPNAK becomes: the address can't be used here.
var errRefused = errors.New("the DHCP server refuses the address")

// exchanger asks servers. Each method is one exchange, retries included.
type exchanger interface {
	// acquire finds a server and gets a lease.
	acquire(ctx context.Context) (*Lease, error)
	// confirm asks whether an address that was leased earlier can be used on
	// this network, maybe another one than before.
	confirm(ctx context.Context, l *Lease) (*Lease, error)
	// renew asks the lease's server for more time, rebind every server.
	renew(ctx context.Context, l *Lease) (*Lease, error)
	rebind(ctx context.Context, l *Lease) (*Lease, error)
}

// wire is the exchanger over an interface.
type wire struct {
	name         string
	hardwareAddr net.HardwareAddr
}

// modifiers are what all requests have: what is wanted to know, and how much an
// answer may hold.
func modifiers(more ...dhcpv4.Modifier) []dhcpv4.Modifier {
	return append(more,
		dhcpv4.WithRequestedOptions(
			dhcpv4.OptionSubnetMask,
			// Ahead of the gateway, as RFC 3442 asks for.
			dhcpv4.OptionClasslessStaticRoute,
			dhcpv4.OptionRouter,
			dhcpv4.OptionDomainNameServer,
			dhcpv4.OptionInterfaceMTU,
			dhcpv4.OptionNTPServers,
			dhcpv4.OptionRenewTimeValue,
			dhcpv4.OptionRebindingTimeValue,
		),
		dhcpv4.WithOption(dhcpv4.OptMaxMessageSize(nclient4.MaxMessageSize)))
}

// raw opens a client that needs no address. It is closed after each exchange.
func (w *wire) raw() (*nclient4.Client, error) {
	ifi, err := net.InterfaceByName(w.name)
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCP: %w", w.name, err)
	}
	filter, err := bpf.Assemble(onlyAnswers())
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCP: %w", w.name, err)
	}
	conn, err := packet.Listen(ifi, packet.Datagram, unix.ETH_P_IP, &packet.Config{Filter: filter})
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCP: %w", w.name, err)
	}
	broadcast := nclient4.NewBroadcastUDPConn(conn, &net.UDPAddr{Port: clientPort})
	return w.client(broadcast)
}

// onlyAnswers lets through UDP to the client's port that isn't a later fragment:
// the socket would otherwise see all of the interface's traffic.
func onlyAnswers() []bpf.Instruction {
	const protocol, fragment, port = 9, 6, 2
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: protocol, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.IPPROTO_UDP, SkipTrue: 6},
		bpf.LoadAbsolute{Off: fragment, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: 4},
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: port, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: clientPort, SkipTrue: 1},
		bpf.RetConstant{Val: 0xffff},
		bpf.RetConstant{Val: 0},
	}
}

// bound opens a client that uses the lease's address, on this interface only.
func (w *wire) bound(l *Lease) (*nclient4.Client, error) {
	config := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failure error
		err := c.Control(func(fd uintptr) {
			failure = errors.Join(
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
				unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_BROADCAST, 1),
				unix.BindToDevice(int(fd), w.name))
		})
		return errors.Join(err, failure)
	}}
	address := netip.AddrPortFrom(l.Address.Addr(), clientPort)
	conn, err := config.ListenPacket(context.Background(), "udp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCP: %w", w.name, err)
	}
	return w.client(conn)
}

func (w *wire) client(conn net.PacketConn) (*nclient4.Client, error) {
	c, err := nclient4.NewWithConn(conn, w.hardwareAddr, nclient4.WithTimeout(answerTimeout), nclient4.WithRetry(retries))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for DHCP: %w", w.name, err), conn.Close())
	}
	return c, nil
}

func (w *wire) acquire(ctx context.Context) (*Lease, error) {
	c, err := w.raw()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	discover, err := dhcpv4.NewDiscovery(w.hardwareAddr, modifiers()...)
	if err != nil {
		return nil, fmt.Errorf("make a DHCP request: %w", err)
	}
	// An offer that can't be used is passed over: another server's may follow.
	var unusable error
	offer, err := c.SendAndRead(ctx, c.RemoteAddr(), discover, func(m *dhcpv4.DHCPv4) bool {
		if m.MessageType() != dhcpv4.MessageTypeOffer {
			return false
		}
		_, err := Parse(m)
		if err != nil {
			unusable = err
		}
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(unusable, fmt.Errorf("find a DHCP server: %w", err))
	}
	request, err := dhcpv4.NewRequestFromOffer(offer, modifiers()...)
	if err != nil {
		return nil, fmt.Errorf("make a DHCP request: %w", err)
	}
	return ask(ctx, c, c.RemoteAddr(), request, offer.ServerIdentifier())
}

func (w *wire) confirm(ctx context.Context, l *Lease) (*Lease, error) {
	c, err := w.raw()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	request, err := dhcpv4.New(modifiers(
		dhcpv4.WithHwAddr(w.hardwareAddr),
		dhcpv4.WithMessageType(dhcpv4.MessageTypeRequest),
		dhcpv4.WithOption(dhcpv4.OptRequestedIPAddress(l.Address.Addr().AsSlice())),
	)...)
	if err != nil {
		return nil, fmt.Errorf("make a DHCP request: %w", err)
	}
	return ask(ctx, c, c.RemoteAddr(), request, nil)
}

func (w *wire) renew(ctx context.Context, l *Lease) (*Lease, error) {
	return w.extend(ctx, l, l.Server.AsSlice(), l.Server.AsSlice())
}

func (w *wire) rebind(ctx context.Context, l *Lease) (*Lease, error) {
	return w.extend(ctx, l, net.IPv4bcast, nil)
}

func (w *wire) extend(ctx context.Context, l *Lease, to, server net.IP) (*Lease, error) {
	c, err := w.bound(l)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	request, err := dhcpv4.NewRenewFromAck(l.ack, modifiers()...)
	if err != nil {
		return nil, fmt.Errorf("make a DHCP request: %w", err)
	}
	return ask(ctx, c, &net.UDPAddr{IP: to, Port: serverPort}, request, server)
}

// ask sends a request and makes a lease of the answer, of one server's if it is
// named.
func ask(ctx context.Context, c *nclient4.Client, to *net.UDPAddr, request *dhcpv4.DHCPv4, server net.IP) (*Lease, error) {
	matching := nclient4.IsMessageType(dhcpv4.MessageTypeAck, dhcpv4.MessageTypeNak)
	if server != nil {
		matching = nclient4.IsAll(matching, nclient4.IsCorrectServer(server))
	}
	answer, err := c.SendAndRead(ctx, to, request, matching)
	if err != nil {
		return nil, fmt.Errorf("ask the DHCP server: %w", err)
	}
	if answer.MessageType() == dhcpv4.MessageTypeNak {
		return nil, errRefused
	}
	return Parse(answer)
}
