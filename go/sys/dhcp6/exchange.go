package dhcp6

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/dhcpv6/nclient6"
	"github.com/insomniacslk/dhcp/iana"
)

const (
	// answerTimeout is how long the first request of an exchange waits; the
	// module doubles it for each of the retries.
	answerTimeout = 2 * time.Second
	retries       = 3
)

// exchanger asks servers. Each method is one exchange, retries included.
type exchanger interface {
	// acquire finds a server and gets addresses.
	acquire(ctx context.Context) (*Lease, error)
	// renew asks the lease's server for more time, rebind every server.
	renew(ctx context.Context, l *Lease) (*Lease, error)
	rebind(ctx context.Context, l *Lease) (*Lease, error)
	// inform asks for the settings that aren't addresses.
	inform(ctx context.Context) (*Lease, error)
}

// wire is the exchanger over an interface.
type wire struct {
	name         string
	hardwareAddr net.HardwareAddr
}

// open opens a client. It fails while the interface has no address of its link
// that is known to be unique.
func (w *wire) open() (*nclient6.Client, error) {
	ifi, err := net.InterfaceByName(w.name)
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCPv6: %w", w.name, err)
	}
	own, err := dhcpv6.GetLinkLocalAddr(w.name)
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCPv6: %w", w.name, err)
	}
	// Go's net package remembers for a minute which index a name has had. The
	// number is right even when the card was just exchanged.
	conn, err := net.ListenUDP("udp6", &net.UDPAddr{IP: own, Port: dhcpv6.DefaultClientPort, Zone: strconv.Itoa(ifi.Index)})
	if err != nil {
		return nil, fmt.Errorf("open %s for DHCPv6: %w", w.name, err)
	}
	c, err := nclient6.NewWithConn(conn, w.hardwareAddr, nclient6.WithTimeout(answerTimeout), nclient6.WithRetry(retries))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open %s for DHCPv6: %w", w.name, err), conn.Close())
	}
	return c, nil
}

// identity is how the machine names itself: by its Ethernet address, so that it
// gets the same addresses after a reboot.
func (w *wire) identity() dhcpv6.DUID {
	return &dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: w.hardwareAddr}
}

func wanted() dhcpv6.Option {
	return dhcpv6.OptRequestedOption(dhcpv6.OptionDNSRecursiveNameServer, dhcpv6.OptionNTPServer,
		dhcpv6.OptionSNTPServerList, dhcpv6.OptionInformationRefreshTime)
}

// request makes a message that isn't a solicitation.
func (w *wire) request(kind dhcpv6.MessageType, options ...dhcpv6.Option) (*dhcpv6.Message, error) {
	m, err := dhcpv6.NewMessage()
	if err != nil {
		return nil, fmt.Errorf("make a DHCPv6 request: %w", err)
	}
	m.MessageType = kind
	m.AddOption(dhcpv6.OptClientID(w.identity()))
	m.AddOption(dhcpv6.OptElapsedTime(0))
	m.AddOption(wanted())
	for _, o := range options {
		m.AddOption(o)
	}
	return m, nil
}

func (w *wire) acquire(ctx context.Context) (*Lease, error) {
	c, err := w.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	solicit, err := dhcpv6.NewSolicit(w.hardwareAddr, func(d dhcpv6.DHCPv6) {
		d.UpdateOption(dhcpv6.OptClientID(w.identity()))
		d.UpdateOption(wanted())
	})
	if err != nil {
		return nil, fmt.Errorf("make a DHCPv6 request: %w", err)
	}
	// An offer that can't be used is passed over: another server's may follow.
	var unusable error
	offer, err := c.SendAndRead(ctx, c.RemoteAddr(), solicit, func(m *dhcpv6.Message) bool {
		if m.MessageType != dhcpv6.MessageTypeAdvertise || !w.mine(m) {
			return false
		}
		_, err := Parse(m, w.name, true)
		if err != nil {
			unusable = err
		}
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(unusable, fmt.Errorf("find a DHCPv6 server: %w", err))
	}
	request, err := w.request(dhcpv6.MessageTypeRequest, dhcpv6.OptServerID(offer.Options.ServerID()), offer.Options.OneIANA())
	if err != nil {
		return nil, err
	}
	return w.ask(ctx, c, request, offer.Options.ServerID(), true)
}

func (w *wire) renew(ctx context.Context, l *Lease) (*Lease, error) {
	return w.extend(ctx, dhcpv6.MessageTypeRenew, l.server, dhcpv6.OptServerID(l.server), l.iana)
}

func (w *wire) rebind(ctx context.Context, l *Lease) (*Lease, error) {
	return w.extend(ctx, dhcpv6.MessageTypeRebind, nil, l.iana)
}

func (w *wire) extend(ctx context.Context, kind dhcpv6.MessageType, server dhcpv6.DUID, options ...dhcpv6.Option) (*Lease, error) {
	c, err := w.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	request, err := w.request(kind, options...)
	if err != nil {
		return nil, err
	}
	return w.ask(ctx, c, request, server, true)
}

func (w *wire) inform(ctx context.Context) (*Lease, error) {
	c, err := w.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	request, err := w.request(dhcpv6.MessageTypeInformationRequest)
	if err != nil {
		return nil, err
	}
	return w.ask(ctx, c, request, nil, false)
}

// mine tells whether an answer is to this machine.
func (w *wire) mine(m *dhcpv6.Message) bool {
	id := m.Options.ClientID()
	return id != nil && id.Equal(w.identity())
}

// ask sends a request and makes a lease of the answer, of one server's if it is
// named.
func (w *wire) ask(ctx context.Context, c *nclient6.Client, request *dhcpv6.Message, server dhcpv6.DUID, addresses bool) (*Lease, error) {
	answer, err := c.SendAndRead(ctx, c.RemoteAddr(), request, func(m *dhcpv6.Message) bool {
		if m.MessageType != dhcpv6.MessageTypeReply || !w.mine(m) {
			return false
		}
		id := m.Options.ServerID()
		return id != nil && (server == nil || id.Equal(server))
	})
	if err != nil {
		return nil, fmt.Errorf("ask the DHCPv6 server: %w", err)
	}
	return Parse(answer, w.name, addresses)
}
