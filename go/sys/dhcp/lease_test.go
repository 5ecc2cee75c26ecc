package dhcp

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv4"
	"golang.org/x/net/bpf"
)

// answer makes an answer with an address, a server and a lease of an hour.
func answer(t testing.TB, address string, bits int, more ...dhcpv4.Modifier) *dhcpv4.DHCPv4 {
	t.Helper()
	m, err := dhcpv4.New(append([]dhcpv4.Modifier{
		dhcpv4.WithMessageType(dhcpv4.MessageTypeAck),
		dhcpv4.WithYourIP(net.ParseIP(address)),
		dhcpv4.WithNetmask(net.CIDRMask(bits, 32)),
		dhcpv4.WithLeaseTime(3600),
		dhcpv4.WithOption(dhcpv4.OptServerIdentifier(net.IPv4(192, 0, 2, 1))),
	}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	m.OpCode = dhcpv4.OpcodeBootReply
	return m
}

func ips(texts ...string) []net.IP {
	var all []net.IP
	for _, text := range texts {
		all = append(all, net.ParseIP(text))
	}
	return all
}

func classless(t testing.TB, pairs ...string) dhcpv4.Modifier {
	t.Helper()
	var routes []*dhcpv4.Route
	for i := 0; i < len(pairs); i += 2 {
		_, n, err := net.ParseCIDR(pairs[i])
		if err != nil {
			t.Fatal(err)
		}
		routes = append(routes, &dhcpv4.Route{Dest: n, Router: net.ParseIP(pairs[i+1]).To4()})
	}
	return dhcpv4.WithOption(dhcpv4.OptClasslessStaticRoute(routes...))
}

func TestGoodAnswer(t *testing.T) {
	l, err := Parse(answer(t, "192.0.2.10", 24,
		dhcpv4.WithOption(dhcpv4.OptRouter(ips("192.0.2.1", "192.0.2.2")...)),
		dhcpv4.WithOption(dhcpv4.OptDNS(ips("192.0.2.53", "198.51.100.53", "192.0.2.53")...)),
		dhcpv4.WithOption(dhcpv4.OptNTPServers(ips("192.0.2.123")...)),
		dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0x05, 0xb4})))
	if err != nil {
		t.Fatal(err)
	}
	if l.Address.String() != "192.0.2.10/24" || l.MTU != 1460 || len(l.DNS) != 2 || len(l.NTP) != 1 || len(l.Ignored) != 0 {
		t.Errorf("%+v", l)
	}
	if want := (Route{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("192.0.2.1")}); !slices.Equal(l.Routes, []Route{want}) {
		t.Errorf("routes %v", l.Routes)
	}
	if l.Duration != time.Hour || l.Renew != 30*time.Minute || l.Rebind != time.Hour/8*7 {
		t.Errorf("times %v, %v, %v", l.Renew, l.Rebind, l.Duration)
	}
}

func TestRefusedAnswers(t *testing.T) {
	noServer := answer(t, "192.0.2.10", 24)
	noServer.Options.Del(dhcpv4.OptionServerIdentifier)
	holes := answer(t, "192.0.2.10", 24, dhcpv4.WithGeneric(dhcpv4.OptionSubnetMask, []byte{255, 0, 255, 0}))
	for name, m := range map[string]*dhcpv4.DHCPv4{
		"no address":        answer(t, "0.0.0.0", 24),
		"loopback":          answer(t, "127.0.0.1", 24),
		"multicast":         answer(t, "224.0.0.1", 24),
		"reserved":          answer(t, "255.255.255.255", 24),
		"the network":       answer(t, "192.0.2.0", 24),
		"the broadcast":     answer(t, "192.0.2.255", 24),
		"a mask of nothing": answer(t, "192.0.2.10", 0),
		"a mask with holes": holes,
		"no time":           answer(t, "192.0.2.10", 24, dhcpv4.WithLeaseTime(0)),
		"too short a time":  answer(t, "192.0.2.10", 24, dhcpv4.WithLeaseTime(9)),
		"no server":         noServer,
	} {
		if l, err := Parse(m); !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}

func TestLiesAreLeftOut(t *testing.T) {
	many := make([]net.IP, 60)
	for i := range many {
		many[i] = net.IPv4(10, 0, 0, byte(i+1))
	}
	l, err := Parse(answer(t, "192.0.2.10", 24,
		dhcpv4.WithOption(dhcpv4.OptRouter(ips("198.51.100.1", "127.0.0.1", "192.0.2.10", "192.0.2.255")...)),
		dhcpv4.WithOption(dhcpv4.OptDNS(many...)),
		dhcpv4.WithOption(dhcpv4.OptNTPServers(ips("127.0.0.1", "224.0.1.1")...)),
		dhcpv4.WithGeneric(dhcpv4.OptionInterfaceMTU, []byte{0, 68})))
	if err != nil {
		t.Fatal(err)
	}
	if len(l.Routes) != 0 || len(l.DNS) != maxServers || len(l.NTP) != 0 || l.MTU != 0 || len(l.Ignored) != 8 {
		t.Errorf("%+v", l)
	}
}

func TestTimes(t *testing.T) {
	seconds := func(n byte) []byte { return []byte{0, 0, 0, n} }
	for _, c := range []struct{ lease, renew, rebind, wantRenew, wantRebind byte }{
		{100, 0, 0, 50, 87}, {100, 10, 20, 10, 20}, {100, 90, 20, 17, 20}, {100, 90, 200, 50, 87}, {100, 1, 2, 5, 5},
	} {
		l, err := Parse(answer(t, "192.0.2.10", 24, dhcpv4.WithLeaseTime(uint32(c.lease)),
			dhcpv4.WithGeneric(dhcpv4.OptionRenewTimeValue, seconds(c.renew)),
			dhcpv4.WithGeneric(dhcpv4.OptionRebindingTimeValue, seconds(c.rebind))))
		if err != nil || l.Renew/time.Second != time.Duration(c.wantRenew) || l.Rebind/time.Second != time.Duration(c.wantRebind) {
			t.Errorf("%+v: %v, %v, %v", c, l.Renew, l.Rebind, err)
		}
	}
	l, err := Parse(answer(t, "192.0.2.10", 24, dhcpv4.WithLeaseTime(1<<32-1)))
	if err != nil || l.Duration != (1<<32-1)*time.Second || l.Renew <= 0 || l.Rebind <= l.Renew {
		t.Errorf("for ever: %+v, %v", l, err)
	}
}

func TestClasslessRoutes(t *testing.T) {
	l, err := Parse(answer(t, "192.0.2.10", 24,
		dhcpv4.WithOption(dhcpv4.OptRouter(ips("192.0.2.1")...)),
		classless(t, "0.0.0.0/0", "192.0.2.2", "10.0.0.0/8", "198.51.100.1", "198.51.100.0/24", "0.0.0.0",
			"127.0.0.0/8", "192.0.2.1", "0.0.0.0/0", "192.0.2.3", "172.16.0.0/12", "203.0.113.1")))
	if err != nil {
		t.Fatal(err)
	}
	want := []Route{
		{Destination: netip.MustParsePrefix("198.51.100.0/24")},
		{Destination: netip.MustParsePrefix("0.0.0.0/0"), Gateway: netip.MustParseAddr("192.0.2.2")},
		{Destination: netip.MustParsePrefix("10.0.0.0/8"), Gateway: netip.MustParseAddr("198.51.100.1"), OnLink: true},
	}
	if !slices.Equal(l.Routes, want) || len(l.Ignored) != 2 {
		t.Errorf("routes %v, ignored %q", l.Routes, l.Ignored)
	}
}

// A network of one address, as Google Cloud has it.
func TestGatewayOfASingleAddress(t *testing.T) {
	l, err := Parse(answer(t, "10.128.0.5", 32, dhcpv4.WithOption(dhcpv4.OptRouter(ips("10.128.0.1")...))))
	if err != nil || len(l.Routes) != 1 || !l.Routes[0].OnLink {
		t.Errorf("%+v, %v", l, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(answer(f, "192.0.2.10", 24).ToBytes())
	f.Add(answer(f, "10.128.0.5", 32, dhcpv4.WithOption(dhcpv4.OptRouter(ips("10.128.0.1")...))).ToBytes())
	f.Add(answer(f, "192.0.2.10", 24, classless(f, "0.0.0.0/0", "192.0.2.2", "198.51.100.0/24", "0.0.0.0")).ToBytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := dhcpv4.FromBytes(b)
		if err != nil {
			return
		}
		l, err := Parse(m)
		if err != nil {
			return
		}
		if !l.Address.IsValid() || l.Duration < MinLease || l.Renew <= 0 || l.Renew > l.Rebind || l.Rebind > l.Duration {
			t.Errorf("%+v", l)
		}
		if len(l.Routes) > maxRoutes || len(l.DNS) > maxServers || len(l.NTP) > maxServers || l.MTU != 0 && l.MTU < MinMTU {
			t.Errorf("%+v", l)
		}
		for _, r := range l.Routes {
			if r.Destination.Masked() != r.Destination || r.Gateway == l.Address.Addr() || r.Gateway.IsLoopback() || r.Gateway.IsMulticast() {
				t.Errorf("route %+v", r)
			}
		}
	})
}

func TestFilter(t *testing.T) {
	vm, err := bpf.NewVM(onlyAnswers())
	if err != nil {
		t.Fatal(err)
	}
	// An IPv4 header of 24 bytes and a UDP header.
	p := make([]byte, 32)
	p[0], p[9], p[27] = 0x46, 17, clientPort
	for _, c := range []struct {
		change func(p []byte)
		pass   bool
	}{
		{func([]byte) {}, true},
		{func(p []byte) { p[9] = 6 }, false},
		{func(p []byte) { p[7] = 1 }, false},
		{func(p []byte) { p[27] = 67 }, false},
		{func(p []byte) { p[0] = 0x45 }, false},
	} {
		q := slices.Clone(p)
		c.change(q)
		if n, err := vm.Run(q); err != nil || n > 0 != c.pass {
			t.Errorf("%x passes: %v, %v", q, n > 0, err)
		}
	}
}
