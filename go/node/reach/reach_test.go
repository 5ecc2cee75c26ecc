package reach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

// quick is a Prober that doesn't wait long for what never comes.
var quick = Prober{echoWait: 50 * time.Millisecond, connectWait: 50 * time.Millisecond}

// set writes a parameter of the network's, in the namespace of the caller.
func set(t *testing.T, name, value string) {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
}

// network connects the test, as 192.0.2.2 and 2001:db8::2, with another machine, which
// is 192.0.2.1 and 2001:db8::1 and routes to places that can't be reached.
func network(t *testing.T) *namespace.Namespace {
	t.Helper()
	far := namespace.New(t)
	near := namespace.Cable(t, "eth0", far, "far0", "192.0.2.1/24", "2001:db8::1/64")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	lo, err := netlink.LinkByName("lo")
	check(err)
	check(netlink.LinkSetUp(lo))
	check(netlink.LinkSetUp(near))
	for _, a := range []string{"192.0.2.2/24", "2001:db8::2/64"} {
		address, err := netlink.ParseAddr(a)
		check(err)
		address.Flags = unix.IFA_F_NODAD
		check(netlink.AddrReplace(near, address))
	}
	for gateway, whole := range map[string]string{"192.0.2.1": "0.0.0.0/0", "2001:db8::1": "::/0"} {
		_, all, err := net.ParseCIDR(whole)
		check(err)
		check(netlink.RouteReplace(&netlink.Route{Dst: all, Gw: net.ParseIP(gateway), LinkIndex: near.Attrs().Index}))
	}
	check(far.Do(func() error {
		set(t, "ipv4/ip_forward", "1")
		set(t, "ipv6/conf/all/forwarding", "1")
		// Without this only one error in a second is sent.
		set(t, "ipv4/icmp_ratelimit", "0")
		set(t, "ipv6/icmp/ratelimit", "0")
		for place, kind := range map[string]int{
			"198.51.100.1/32": unix.RTN_BLACKHOLE, "198.51.100.2/32": unix.RTN_UNREACHABLE, "198.51.100.3/32": unix.RTN_PROHIBIT,
			"2001:db8:1::1/128": unix.RTN_BLACKHOLE, "2001:db8:1::2/128": unix.RTN_UNREACHABLE, "2001:db8:1::3/128": unix.RTN_PROHIBIT,
		} {
			_, to, err := net.ParseCIDR(place)
			if err != nil {
				return err
			}
			if err := netlink.RouteReplace(&netlink.Route{Dst: to, Type: kind}); err != nil {
				return err
			}
		}
		return nil
	}))
	return far
}

// ping pings a target that may be pinged.
func ping(t *testing.T, p Prober, target string) message.Pinged {
	t.Helper()
	got, err := p.Ping(t.Context(), message.Ping{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// alone returns the tries of the one address.
func alone(t *testing.T, got message.Pinged, host string) []message.PingTry {
	t.Helper()
	if len(got.Addresses) != 1 || got.Addresses[0].Address != netip.MustParseAddr(host) || got.Lookup != 0 || got.LookupError != "" || got.Untried != 0 {
		t.Fatalf("%s: %+v", host, got)
	}
	return got.Addresses[0].Tries
}

func TestEcho(t *testing.T) {
	for kind, sockets := range map[string][]int{"raw": {unix.SOCK_RAW}, "datagram": {unix.SOCK_DGRAM}} {
		t.Run(kind, func(t *testing.T) {
			network(t)
			// The group of root may send echo requests without a privilege.
			set(t, "ipv4/ping_group_range", "0 0")
			// Of IPv4, a router sends an address five errors at once, and then one in a
			// second.
			for host, want := range map[string]string{
				"192.0.2.1": "", "2001:db8::1": "", "127.0.0.1": "", "::1": "", "192.0.2.2": "",
				"198.51.100.1": "no answer within 50ms", "2001:db8:1::1": "no answer within 50ms",
				"198.51.100.2": "no route to host", "2001:db8:1::2": "network is unreachable",
				"2001:db8:1::3": "permission denied",
			} {
				p := Prober{}
				if strings.HasPrefix(want, "no answer") {
					p = quick
				}
				p.sockets = sockets
				tries := alone(t, ping(t, p, host), host)
				if len(tries) != echoes {
					t.Errorf("%s: %+v", host, tries)
				}
				for _, try := range tries {
					if try.Error != want || try.Duration <= 0 {
						t.Errorf("%s: %+v, want %q", host, try, want)
					}
				}
			}
		})
	}
}

// TestEchoToNobody pings an address on the wire that no machine has: the kernel finds
// out itself that nobody answers.
func TestEchoToNobody(t *testing.T) {
	network(t)
	set(t, "ipv4/neigh/eth0/retrans_time_ms", "10")
	set(t, "ipv4/ping_group_range", "0 0")
	for _, kind := range []int{unix.SOCK_RAW, unix.SOCK_DGRAM} {
		tries := alone(t, ping(t, Prober{sockets: []int{kind}}, "192.0.2.77"), "192.0.2.77")
		if len(tries) != echoes || tries[0].Error != "no route to host" {
			t.Errorf("sockets of kind %d: %+v", kind, tries)
		}
	}
}

func TestConnect(t *testing.T) {
	far := network(t)
	for _, host := range []string{"192.0.2.1", "2001:db8::1"} {
		var listener net.Listener
		if err := far.Do(func() (err error) {
			listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		open := listener.Addr().String()
		if tries := alone(t, ping(t, Prober{}, open), host); len(tries) != 1 || tries[0].Error != "" || tries[0].Duration <= 0 {
			t.Errorf("%s: %+v", open, tries)
		}
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Errorf("%s was sent something, %v", open, err)
		}
		_ = conn.Close()
		_ = listener.Close()
		if tries := alone(t, ping(t, Prober{}, open), host); len(tries) != 1 || tries[0].Error != "connection refused" {
			t.Errorf("%s, closed: %+v", open, tries)
		}
	}
	for target, want := range map[string]string{
		"198.51.100.1:80": "no answer within 50ms", "[2001:db8:1::1]:80": "no answer within 50ms",
		"198.51.100.2:80": "no route to host", "[2001:db8:1::2]:80": "network is unreachable",
		"198.51.100.3:80": "no route to host", "[2001:db8:1::3]:80": "permission denied",
	} {
		p := Prober{}
		if strings.HasPrefix(want, "no answer") {
			p = quick
		}
		host := netip.MustParseAddrPort(target).Addr().String()
		if tries := alone(t, ping(t, p, target), host); len(tries) != 1 || tries[0].Error != want {
			t.Errorf("%s: %+v, want %q", target, tries, want)
		}
	}
}

func TestNoNetwork(t *testing.T) {
	namespace.Enter(t)
	for _, target := range []string{"192.0.2.1", "2001:db8::1", "192.0.2.1:80", "[2001:db8::1]:80"} {
		got := ping(t, Prober{}, target)
		if len(got.Addresses) != 1 || len(got.Addresses[0].Tries) == 0 {
			t.Fatalf("%s: %+v", target, got)
		}
		for _, try := range got.Addresses[0].Tries {
			if try.Error != "network is unreachable" {
				t.Errorf("%s: %+v", target, try)
			}
		}
	}
}

// TestEnds has an admin go away, and the time run out, while nothing answers.
func TestEnds(t *testing.T) {
	network(t)
	for _, target := range []string{"198.51.100.1", "2001:db8:1::1", "198.51.100.1:80"} {
		// Nothing would come within an hour.
		p := Prober{echoWait: time.Hour, connectWait: time.Hour}
		ctx, stop := context.WithCancel(t.Context())
		host := make(chan struct{})
		p.Lookup = func(context.Context, string) ([]netip.Addr, error) {
			close(host)
			name, _, _ := strings.Cut(target, ":80")
			return []netip.Addr{netip.MustParseAddr(strings.Trim(name, "[]"))}, nil
		}
		go func() {
			<-host
			stop()
		}()
		name := "host.example"
		if strings.HasSuffix(target, ":80") {
			name += ":80"
		}
		got, err := p.Ping(ctx, message.Ping{Target: name})
		if err != nil || len(got.Addresses) != 1 || len(got.Addresses[0].Tries) != 1 || got.Addresses[0].Tries[0].Error != "stopped" {
			t.Errorf("%s, stopped: %+v, %v", target, got, err)
		}
		p.Lookup = nil
		short, stop := context.WithTimeout(t.Context(), 30*time.Millisecond)
		got, err = p.Ping(short, message.Ping{Target: target})
		stop()
		if err != nil || len(got.Addresses) != 1 || len(got.Addresses[0].Tries) != 1 ||
			got.Addresses[0].Tries[0].Error != "no answer in the time that was left of 10s" {
			t.Errorf("%s, out of time: %+v, %v", target, got, err)
		}
	}
}

func TestLookup(t *testing.T) {
	network(t)
	p := quick
	var found []netip.Addr
	var failure error
	p.Lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		if name != "host.example" {
			t.Errorf("%q is looked up", name)
		}
		return found, failure
	}
	found = []netip.Addr{
		netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("::ffff:192.0.2.1"), netip.MustParseAddr("198.51.100.1"),
	}
	got := ping(t, p, "Host.example.:9")
	if got.Lookup <= 0 || len(got.Addresses) != 3 {
		t.Fatalf("%+v", got)
	}
	for i, want := range []struct{ address, failure string }{
		{"2001:db8::1", "connection refused"}, {"192.0.2.1", "connection refused"}, {"198.51.100.1", "no answer within 50ms"},
	} {
		a := got.Addresses[i]
		if a.Address.String() != want.address || len(a.Tries) != 1 || a.Tries[0].Error != want.failure {
			t.Errorf("%+v, want %+v", a, want)
		}
	}
	found = nil
	for range 30 {
		found = append(found, netip.MustParseAddr("192.0.2.1"))
	}
	if got := ping(t, p, "host.example"); len(got.Addresses) != maxAddresses || got.Untried != 30-maxAddresses {
		t.Errorf("%d addresses are tried, %d not", len(got.Addresses), got.Untried)
	}
	found, failure = nil, errors.New("first\nsecond"+strings.Repeat("ö", maxError))
	got = ping(t, p, "host.example")
	if !strings.HasPrefix(got.LookupError, "first; second") || len(got.LookupError) > maxError+3 || got.Addresses == nil || len(got.Addresses) != 0 {
		t.Errorf("%+v", got)
	}
	failure = nil
	if got = ping(t, p, "host.example"); got.LookupError != "the name has no addresses" {
		t.Errorf("%+v", got)
	}
}

func TestTargets(t *testing.T) {
	for _, bad := range []string{"", "-a", "-a:80", "a:0", "a:65536", "a b", "224.0.0.1", "[::1", "1.2.3", "a:1:2", "fe80::1%eth0"} {
		if got, err := (Prober{}).Ping(t.Context(), message.Ping{Target: bad}); err == nil {
			t.Errorf("%q is pinged: %+v", bad, got)
		}
	}
}
