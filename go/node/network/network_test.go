package network

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"powercloud.unidatum.com/go/sys/link"
	"powercloud.unidatum.com/tests/dnsmasq"
	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

// node is a Network that runs.
type node struct {
	*Network
	resolvConf string
	// stop ends it before the test does.
	stop func()
}

// start runs a Network that manages the interfaces whose names begin with "eth".
func start(t *testing.T) *node {
	t.Helper()
	return startAgain(t, t.TempDir())
}

// startAgain is start with a folder that one before may have left something in.
func startAgain(t *testing.T, folder string) *node {
	t.Helper()
	namespace.Enter(t)
	n := &node{resolvConf: filepath.Join(folder, "resolv.conf")}
	n.Network = New(Config{
		Manage:     func(i link.Interface) bool { return strings.HasPrefix(i.Name, "eth") },
		ResolvConf: n.resolvConf, RunFolder: filepath.Join(folder, "run"), SysctlRoot: "/proc/sys",
		Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- n.Run(ctx) }()
	n.stop = sync.OnceFunc(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(n.stop)
	return n
}

// await waits until the state is as it should be.
func (n *node) await(t *testing.T, what string, holds func(State) bool) State {
	t.Helper()
	deadline := time.After(time.Minute)
	// Routes change without the state: they are looked at every so often.
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		state, changed := n.State()
		if holds(state) {
			return state
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-deadline:
			t.Fatalf("after a minute: not %s: %+v; routes %v", what, state, routes(t))
		}
	}
}

func (s State) interfaceNamed(name string) Interface {
	for _, i := range s.Interfaces {
		if i.Name == name {
			return i
		}
	}
	return Interface{}
}

// has tells whether an interface has an address in a network.
func (s State) has(name, network string) bool {
	p := netip.MustParsePrefix(network)
	return slices.ContainsFunc(s.interfaceNamed(name).Addresses, func(a netip.Prefix) bool { return p.Contains(a.Addr()) })
}

// routes returns the IPv4 routes by DHCP, one a line.
func routes(t *testing.T) []string {
	t.Helper()
	found, err := netlink.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Protocol: 16}, netlink.RT_FILTER_PROTOCOL)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, r := range found {
		line := r.Dst.String()
		if r.Gw != nil {
			line += " via " + r.Gw.String()
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

// lookup asks the name servers that the node has been told.
func lookup(t *testing.T, server netip.Addr, name string) []string {
	t.Helper()
	r := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, netip.AddrPortFrom(server, 53).String())
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	addresses, err := r.LookupHost(ctx, name)
	if err != nil {
		t.Errorf("asking %s: %v", server, err)
	}
	return addresses
}

func addrs(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestEverythingAServerSays(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24", "2001:db8::1/64")
	dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces",
		"--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h",
		"--dhcp-range=2001:db8::100,2001:db8::1ff,64,1h", "--enable-ra", "--ra-param=srv0,4,600",
		"--dhcp-option=option:mtu,1400", "--dhcp-option=option:ntp-server,192.0.2.1",
		"--dhcp-option=option6:ntp-server,[2001:db8::1]", "--dhcp-option=option6:dns-server,[2001:db8::1]",
		"--address=/name.test/198.51.100.7")
	n := start(t)
	state := n.await(t, "complete", func(s State) bool {
		return s.has("eth0", "192.0.2.0/24") && s.has("eth0", "2001:db8::100/120") && len(s.NTP) == 2 && len(s.DNS) == 2
	})
	i := state.interfaceNamed("eth0")
	if i.MTU != 1400 || !i.Carrier {
		t.Errorf("the interface: %+v", i)
	}
	if want := addrs("192.0.2.1", "2001:db8::1"); !slices.Equal(state.DNS, want) || !slices.Equal(state.NTP, want) {
		t.Errorf("DNS %v, NTP %v", state.DNS, state.NTP)
	}
	if got := routes(t); !slices.Equal(got, []string{"0.0.0.0/0 via 192.0.2.1", "192.0.2.0/24"}) {
		t.Errorf("routes %q", got)
	}
	for _, server := range state.DNS {
		if got := lookup(t, server, "name.test"); !slices.Equal(got, []string{"198.51.100.7"}) {
			t.Errorf("%s says that name.test is %q", server, got)
		}
	}
	text, err := os.ReadFile(n.resolvConf)
	if err != nil || !strings.Contains(string(text), "nameserver 192.0.2.1\nnameserver 2001:db8::1\n") {
		t.Errorf("resolv.conf: %q, %v", text, err)
	}
	// The default route of IPv6 is the router's, with the interface's metric.
	six, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{}, netlink.RT_FILTER_DST)
	if err != nil || len(six) != 1 || six[0].Priority != firstMetric+i.Index {
		t.Errorf("IPv6 default routes %v, %v", six, err)
	}
}

func TestAddressesFromRoutersAlone(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "2001:db8::1/64")
	dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces", "--enable-ra", "--ra-param=srv0,4,600",
		"--dhcp-range=2001:db8::,ra-stateless,64,1h", "--dhcp-option=option6:ntp-server,[2001:db8::123]",
		"--dhcp-option=option6:dns-server,[2001:db8::53]")
	n := start(t)
	state := n.await(t, "complete", func(s State) bool {
		return s.has("eth0", "2001:db8::/64") && len(s.NTP) == 1 && len(s.DNS) == 1
	})
	if !slices.Equal(state.DNS, addrs("2001:db8::53")) || !slices.Equal(state.NTP, addrs("2001:db8::123")) {
		t.Errorf("DNS %v, NTP %v", state.DNS, state.NTP)
	}
}

func TestTwoWaysOut(t *testing.T) {
	far, other := namespace.New(t), namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	namespace.Cable(t, "eth1", other, "srv1", "198.51.100.1/24")
	dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces", "--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h")
	dnsmasq.Start(t, other, "--interface=srv1", "--bind-interfaces", "--dhcp-range=198.51.100.100,198.51.100.150,255.255.255.0,1h")
	if err := os.WriteFile("/proc/sys/net/ipv4/conf/all/ignore_routes_with_linkdown", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	n := start(t)
	n.await(t, "both have addresses", func(s State) bool {
		return s.has("eth0", "192.0.2.0/24") && s.has("eth1", "198.51.100.0/24") && len(routes(t)) == 4
	})
	way := func() string {
		found, err := netlink.RouteGet(net.IPv4(203, 0, 113, 1))
		if err != nil || len(found) != 1 {
			return "none"
		}
		return found[0].Gw.String()
	}
	if got := way(); got != "192.0.2.1" {
		t.Errorf("the way out is %s", got)
	}
	namespace.Plug(t, far, "srv0", false)
	n.await(t, "the second way", func(State) bool { return way() == "198.51.100.1" })
	namespace.Plug(t, far, "srv0", true)
	n.await(t, "the first way again", func(State) bool { return way() == "192.0.2.1" })
}

func TestCableMovedToAnotherNetwork(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	first := dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces", "--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h")
	n := start(t)
	before := n.await(t, "has an address", func(s State) bool { return s.has("eth0", "192.0.2.0/24") })

	// A short flap: the same address, confirmed.
	namespace.Plug(t, far, "srv0", false)
	n.await(t, "without carrier", func(s State) bool { return !s.interfaceNamed("eth0").Carrier })
	namespace.Plug(t, far, "srv0", true)
	n.await(t, "confirmed", func(State) bool { return strings.Count(first.Log(), "DHCPACK") == 2 })
	if after, _ := n.State(); !slices.Equal(after.Addresses(), before.Addresses()) {
		t.Errorf("before %v, afterwards %v", before.Addresses(), after.Addresses())
	}

	// Another network at the other end.
	namespace.Plug(t, far, "srv0", false)
	first.Stop(t)
	namespace.Address(t, far, "srv0", "198.51.100.1/24")
	second := dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces", "--dhcp-authoritative",
		"--dhcp-range=198.51.100.100,198.51.100.150,255.255.255.0,1h")
	n.await(t, "without carrier", func(s State) bool { return !s.interfaceNamed("eth0").Carrier })
	namespace.Plug(t, far, "srv0", true)
	n.await(t, "on the other network", func(s State) bool {
		return s.has("eth0", "198.51.100.0/24") && !s.has("eth0", "192.0.2.0/24")
	})
	_ = second
}

func TestInterfaceThatComesLaterAndGoes(t *testing.T) {
	far := namespace.New(t)
	n := start(t)
	near := namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	namespace.Plug(t, far, "srv0", false)
	dnsmasq.Start(t, far, "--interface=srv0", "--bind-dynamic", "--dhcp-range=192.0.2.100,192.0.2.150,255.255.255.0,1h")
	n.await(t, "managed", func(s State) bool { return len(s.Interfaces) == 1 })
	namespace.Plug(t, far, "srv0", true)
	n.await(t, "has an address", func(s State) bool { return s.has("eth0", "192.0.2.0/24") && len(s.DNS) == 1 })
	if err := netlink.LinkDel(near); err != nil {
		t.Fatal(err)
	}
	n.await(t, "gone", func(s State) bool { return len(s.Interfaces) == 0 && len(s.DNS) == 0 })
}
