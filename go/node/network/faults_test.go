package network

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"github.com/insomniacslk/dhcp/dhcpv4/server4"
	"github.com/vishvananda/netlink"

	"powercloud.unidatum.com/go/sys/dhcp6"
	"powercloud.unidatum.com/go/sys/link"
	"powercloud.unidatum.com/tests/namespace"
)

// liar is a DHCP server that says what a test wants.
type liar struct {
	mu sync.Mutex
	// answer changes an answer that is right so far; it returns false to say
	// nothing. It is called with the number of the request, from 1.
	answer   func(request int, m *dhcpv4.DHCPv4) bool
	requests int
}

// serve runs the server in a namespace for the test's time. It gives 192.0.2.10
// for an hour.
func (l *liar) serve(t *testing.T, far *namespace.Namespace, name string) {
	t.Helper()
	var server *server4.Server
	if err := far.Do(func() (err error) {
		server, err = server4.NewServer(name, &net.UDPAddr{Port: 67}, l.handle)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve() // It ends with an error when it is closed.
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-ended
	})
}

func (l *liar) handle(conn net.PacketConn, peer net.Addr, request *dhcpv4.DHCPv4) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := dhcpv4.MessageTypeOffer
	if request.MessageType() == dhcpv4.MessageTypeRequest {
		kind = dhcpv4.MessageTypeAck
	}
	m, err := dhcpv4.NewReplyFromRequest(request,
		dhcpv4.WithMessageType(kind),
		dhcpv4.WithYourIP(net.IPv4(192, 0, 2, 10)),
		dhcpv4.WithNetmask(net.CIDRMask(24, 32)),
		dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 1))),
		dhcpv4.WithOption(dhcpv4.OptRouter(net.IPv4(192, 0, 2, 1))))
	if err != nil {
		return
	}
	l.requests++
	if !l.answer(l.requests, m) {
		return
	}
	if to, ok := peer.(*net.UDPAddr); ok && (to.IP.IsUnspecified() || len(to.IP) == 0) {
		peer = &net.UDPAddr{IP: net.IPv4bcast, Port: to.Port}
	}
	_, _ = conn.WriteTo(m.ToBytes(), peer)
}

func (l *liar) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests
}

func TestLiesOfADHCPServer(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	l := &liar{answer: func(request int, m *dhcpv4.DHCPv4) bool {
		if request <= 2 {
			// A lease of no time, twice.
			m.UpdateOption(dhcpv4.OptIPAddressLeaseTime(0))
			return true
		}
		m.UpdateOption(dhcpv4.OptRouter(net.IPv4(203, 0, 113, 1), net.IPv4(127, 0, 0, 1)))
		m.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{0, 68}))
		many := []net.IP{net.IPv4(127, 0, 0, 1)}
		for i := range 200 {
			many = append(many, net.IPv4(198, 51, 100, byte(i+1)))
		}
		m.UpdateOption(dhcpv4.OptDNS(many...))
		return true
	}}
	l.serve(t, far, "srv0")
	n := start(t)
	state := n.await(t, "has an address", func(s State) bool { return s.has("eth0", "192.0.2.10/32") && len(s.DNS) > 0 })
	if got := routes(t); !slices.Equal(got, []string{"192.0.2.0/24"}) {
		t.Errorf("routes %q", got)
	}
	if i := state.interfaceNamed("eth0"); i.MTU != 1500 || len(state.DNS) > 8 || state.DNS[0].IsLoopback() {
		t.Errorf("%+v", state)
	}
}

func TestMTUTooSmallForIPv6(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	l := &liar{answer: func(_ int, m *dhcpv4.DHCPv4) bool {
		m.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x03, 0x20}))
		return true
	}}
	l.serve(t, far, "srv0")
	n := start(t)
	state := n.await(t, "has a route", func(State) bool { return len(routes(t)) == 2 })
	if i := state.interfaceNamed("eth0"); i.MTU != 1500 {
		t.Errorf("the interface's MTU is %d", i.MTU)
	}
	found, err := netlink.RouteGet(net.IPv4(203, 0, 113, 1))
	if err != nil || len(found) != 1 || found[0].MTU != 800 {
		t.Errorf("the route's MTU: %+v, %v", found, err)
	}
}

// A lease names an MTU until pcd is started again, and none afterwards.
func TestMTUOfALeaseBeforeARestart(t *testing.T) {
	far := namespace.New(t)
	near := namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	var silent atomic.Bool
	l := &liar{answer: func(_ int, m *dhcpv4.DHCPv4) bool {
		if !silent.Load() {
			m.UpdateOption(dhcpv4.OptGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x05, 0x78}))
		}
		return true
	}}
	l.serve(t, far, "srv0")
	folder := t.TempDir()
	n := startAgain(t, folder)
	n.await(t, "with the lease's MTU", func(s State) bool { return s.interfaceNamed("eth0").MTU == 1400 })
	n.stop()
	silent.Store(true)
	n = startAgain(t, folder)
	n.await(t, "with its own MTU", func(s State) bool { return s.interfaceNamed("eth0").MTU == 1500 })
	// What was noted goes with the interface.
	if err := netlink.LinkDel(near); err != nil {
		t.Fatal(err)
	}
	n.await(t, "gone", func(s State) bool { return len(s.Interfaces) == 0 })
	if left, err := os.ReadDir(filepath.Join(folder, "run")); err != nil || len(left) > 0 {
		t.Errorf("%d notes are left, %v", len(left), err)
	}
}

func TestNoteThatIsDamaged(t *testing.T) {
	n := New(Config{RunFolder: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	for content, want := range map[string]int{"9000\n": 9000, "": 1500, "-1": 1500, "70000": 1500, "x": 1500, "99999999999999999999": 1500} {
		if err := os.WriteFile(n.mtuFile(3), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := n.recallMTU(3, 1500); got != want {
			t.Errorf("%q was read as %d", content, got)
		}
	}
}

func TestLeaseThatIsOver(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	var silent atomic.Bool
	l := &liar{answer: func(_ int, m *dhcpv4.DHCPv4) bool {
		m.UpdateOption(dhcpv4.OptIPAddressLeaseTime(10e9))
		m.UpdateOption(dhcpv4.OptDNS(net.IPv4(192, 0, 2, 1)))
		return !silent.Load()
	}}
	l.serve(t, far, "srv0")
	n := start(t)
	n.await(t, "has an address", func(s State) bool { return s.has("eth0", "192.0.2.10/32") && len(s.DNS) == 1 })
	silent.Store(true)
	n.await(t, "without the address", func(s State) bool {
		return !s.has("eth0", "0.0.0.0/0") && len(s.DNS) == 0 && len(routes(t)) == 0
	})
	if l.count() < 4 {
		t.Errorf("only %d requests: it wasn't asked for more time", l.count())
	}
}

func TestAddressTakenBack(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	var other, refused atomic.Bool
	l := &liar{answer: func(_ int, m *dhcpv4.DHCPv4) bool {
		m.UpdateOption(dhcpv4.OptIPAddressLeaseTime(10e9))
		if !other.Load() {
			return true
		}
		m.YourIPAddr = net.IPv4(192, 0, 2, 20)
		if m.MessageType() == dhcpv4.MessageTypeAck && refused.CompareAndSwap(false, true) {
			m.UpdateOption(dhcpv4.OptMessageType(dhcpv4.MessageTypeNak))
		}
		return true
	}}
	l.serve(t, far, "srv0")
	n := start(t)
	n.await(t, "has the first address", func(s State) bool { return s.has("eth0", "192.0.2.10/32") })
	other.Store(true)
	n.await(t, "has the second address alone", func(s State) bool {
		return s.has("eth0", "192.0.2.20/32") && !s.has("eth0", "192.0.2.10/32")
	})
}

// A pcd before has left another address of the same network. As the older one, it is
// the kernel's primary: with it goes every other that the kernel calls its secondary.
func TestAnotherAddressThanBeforeARestart(t *testing.T) {
	far := namespace.New(t)
	near := namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	if err := netlink.LinkSetUp(near); err != nil {
		t.Fatal(err)
	}
	before := &net.IPNet{IP: net.IPv4(192, 0, 2, 9).To4(), Mask: net.CIDRMask(24, 32)}
	if err := netlink.AddrAdd(near, &netlink.Addr{IPNet: before}); err != nil {
		t.Fatal(err)
	}
	l := &liar{answer: func(int, *dhcpv4.DHCPv4) bool { return true }}
	l.serve(t, far, "srv0")
	n := start(t)
	n.await(t, "has the new address alone, and routes", func(s State) bool {
		return s.has("eth0", "192.0.2.10/32") && !s.has("eth0", "192.0.2.9/32") && len(routes(t)) == 2
	})
}

func TestRenewedInTime(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	l := &liar{answer: func(_ int, m *dhcpv4.DHCPv4) bool {
		m.UpdateOption(dhcpv4.OptIPAddressLeaseTime(10e9))
		return true
	}}
	l.serve(t, far, "srv0")
	n := start(t)
	n.await(t, "has an address", func(s State) bool { return s.has("eth0", "192.0.2.10/32") })
	// Three times: longer than one lease.
	n.await(t, "renewed", func(s State) bool {
		if !s.has("eth0", "192.0.2.10/32") {
			t.Fatal("the address was lost in between")
		}
		return l.count() >= 5
	})
}

// An address that the server takes back is gone at once, not when its time is over.
func TestIPv6AddressTakenBack(t *testing.T) {
	namespace.Enter(t)
	near := namespace.Cable(t, "eth0", namespace.New(t), "srv0")
	if err := netlink.LinkSetUp(near); err != nil {
		t.Fatal(err)
	}
	table, err := link.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	log := slog.New(slog.DiscardHandler)
	d := &device{network: New(Config{Log: log}), table: table, log: log, name: "eth0", index: near.Attrs().Index}
	has := func() (found []string) {
		addresses, err := netlink.AddrList(near, netlink.FAMILY_V6)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range addresses {
			if a.IP.IsGlobalUnicast() {
				found = append(found, a.IP.String())
			}
		}
		slices.Sort(found)
		return found
	}
	granted := func(texts ...string) *dhcp6.Lease {
		l := &dhcp6.Lease{}
		for _, a := range addrs(texts...) {
			l.Addresses = append(l.Addresses, dhcp6.Address{Address: a, Preferred: time.Hour, Valid: time.Hour})
		}
		return l
	}
	for _, step := range []struct {
		lease *dhcp6.Lease
		want  []string
	}{
		{granted("2001:db8::10", "2001:db8::11"), []string{"2001:db8::10", "2001:db8::11"}},
		{granted("2001:db8::11"), []string{"2001:db8::11"}},
		{nil, nil},
	} {
		d.applyLease6(step.lease)
		if got := has(); !slices.Equal(got, step.want) {
			t.Errorf("after the lease %+v the interface has %q, want %q", step.lease, got, step.want)
		}
	}
}
