package metadata

import (
	"net"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/namespace"
)

// Device is the device of the namespace that [Network] makes.
const Device = "srv0"

// Network makes of the test's process a machine in a cloud: it gets eth0, with an
// address of each protocol, and by it a way to everywhere through a gateway, which is
// the namespace returned. It has nothing else. Without namespaces the test is skipped.
func Network(t testing.TB) *namespace.Namespace {
	t.Helper()
	far := namespace.New(t)
	near := namespace.Cable(t, "eth0", far, Device, "192.0.2.1/24", "2001:db8::1/64")
	if err := netlink.LinkSetUp(near); err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []struct {
		address, gateway net.IP
		bits             int
	}{
		{net.IPv4(192, 0, 2, 10).To4(), net.IPv4(192, 0, 2, 1), 24},
		{net.ParseIP("2001:db8::10"), net.ParseIP("2001:db8::1"), 64},
	} {
		address := &netlink.Addr{
			IPNet: &net.IPNet{IP: protocol.address, Mask: net.CIDRMask(protocol.bits, 8*len(protocol.address))},
			Flags: unix.IFA_F_NODAD,
		}
		if err := netlink.AddrAdd(near, address); err != nil {
			t.Fatal(err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: near.Attrs().Index, Gw: protocol.gateway}); err != nil {
			t.Fatal(err)
		}
	}
	return far
}

// loopback switches the loopback interface on, which is off in a new namespace only.
func loopback() error {
	lo, err := netlink.LinkByName("lo")
	if err != nil || lo.Attrs().Flags&net.FlagUp != 0 {
		return err
	}
	return netlink.LinkSetUp(lo)
}
