package network

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
	"github.com/vishvananda/netlink"

	"powercloud.unidatum.com/go/sys/routerad"
	"powercloud.unidatum.com/tests/namespace"
)

// announcer sends announcements as a router with the address fe80::1.
func announcer(t *testing.T, far *namespace.Namespace, name string) *ndp.Conn {
	t.Helper()
	namespace.Address(t, far, name, "fe80::1/64")
	var conn *ndp.Conn
	if err := far.Do(func() error {
		ifi, err := net.InterfaceByName(name)
		if err != nil {
			return err
		}
		conn, _, err = ndp.Listen(ifi, ndp.Addr("fe80::1"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func announce(t *testing.T, conn *ndp.Conn, options ...ndp.Option) {
	t.Helper()
	ra := &ndp.RouterAdvertisement{CurrentHopLimit: 64, RouterLifetime: time.Hour, Options: options}
	if err := conn.WriteTo(ra, nil, netip.IPv6LinkLocalAllNodes()); err != nil {
		t.Fatal(err)
	}
}

// heeded is whether the kernel listens to routers.
func heeded(t *testing.T) string {
	t.Helper()
	value, err := os.ReadFile("/proc/sys/net/ipv6/conf/eth0/accept_ra")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(value))
}

func TestAnnouncement(t *testing.T) {
	far := namespace.New(t)
	near := namespace.Cable(t, "eth0", far, "srv0")
	router := announcer(t, far, "srv0")
	n := start(t)
	n.await(t, "complete", func(s State) bool {
		announce(t, router,
			&ndp.PrefixInformation{
				Prefix: netip.MustParseAddr("2001:db8::"), PrefixLength: 64, OnLink: true, AutonomousAddressConfiguration: true,
				ValidLifetime: time.Hour, PreferredLifetime: time.Hour,
			},
			&ndp.RecursiveDNSServer{Lifetime: time.Hour, Servers: []netip.Addr{netip.MustParseAddr("2001:db8::53")}})
		return s.has("eth0", "2001:db8::/64") && len(s.DNS) == 1
	})
	six, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{}, netlink.RT_FILTER_DST)
	if err != nil || len(six) != 1 || six[0].Priority != firstMetric+near.Attrs().Index {
		t.Errorf("IPv6 default routes %v, %v", six, err)
	}
}

// A stranger announces 40 other networks each time. The kernel would have a route for
// each of them, for good.
func TestFloodOfNetworks(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0")
	stranger := announcer(t, far, "srv0")
	n := start(t)
	i := 0
	flood := func() {
		var options []ndp.Option
		for j := range 40 {
			i++
			options = append(options, &ndp.PrefixInformation{
				Prefix:       netip.AddrFrom16([16]byte{0x20, 1, 0x0d, 0xb8, byte(i >> 16), byte(i >> 8), byte(i), byte(j)}),
				PrefixLength: 64, OnLink: true, ValidLifetime: ndp.Infinity, PreferredLifetime: ndp.Infinity,
			})
		}
		announce(t, stranger, options...)
	}
	n.await(t, "heeding routers", func(State) bool { return heeded(t) == listening })
	n.await(t, "deaf to routers", func(State) bool {
		flood()
		return heeded(t) == deaf
	})
	count := func() int {
		found, err := netlink.RouteListFiltered(netlink.FAMILY_V6, &netlink.Route{}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return len(found)
	}
	before := count()
	for range 100 {
		flood()
	}
	if after := count(); after > before {
		t.Errorf("%d routes, then %d", before, after)
	}

	// Another network at the other end of the cable.
	namespace.Plug(t, far, "srv0", false)
	n.await(t, "without carrier", func(s State) bool { return !s.interfaceNamed("eth0").Carrier })
	namespace.Plug(t, far, "srv0", true)
	n.await(t, "heeding routers again", func(State) bool { return heeded(t) == listening })
}

// A stranger announces a name server and takes it back, in turns.
func TestFloodOfChanges(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0")
	stranger := announcer(t, far, "srv0")
	n := start(t)
	flap := func(lifetime time.Duration) {
		announce(t, stranger, &ndp.RecursiveDNSServer{Lifetime: lifetime, Servers: []netip.Addr{netip.MustParseAddr("2001:db8::53")}})
	}
	n.await(t, "heard", func(s State) bool {
		flap(time.Hour)
		return len(s.DNS) == 1
	})
	began, changes := time.Now(), 0
	_, changed := n.State()
	for i := range 2000 {
		flap(time.Duration(i%2) * time.Hour)
		select {
		case <-changed:
			changes++
			_, changed = n.State()
		default:
		}
	}
	if most := int(time.Since(began)/pace) + 2; changes > most {
		t.Errorf("%d changes were made known, more than %d", changes, most)
	}
}

func TestCrowd(t *testing.T) {
	now := time.Unix(0, 0)
	router := func(i int) routerad.Advertisement {
		return routerad.Advertisement{Router: netip.AddrFrom16([16]byte{0xfe, 0x80, 15: byte(i)})}
	}
	var c crowd
	for i := range 2 * maxRouters {
		if c.add(router(i/2), now) { // Each of them twice.
			t.Fatalf("router %d is too much", i/2)
		}
	}
	later := c
	if !c.add(router(maxRouters), now.Add(crowdTime-1)) {
		t.Error("one more isn't too much")
	}
	if later.add(router(maxRouters), now.Add(crowdTime)) {
		t.Error("those of an hour ago count")
	}
}
