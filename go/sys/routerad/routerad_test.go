package routerad

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/mdlayher/ndp"
)

var router = netip.MustParseAddr("fe80::1%7")

func message(t testing.TB, ra *ndp.RouterAdvertisement) []byte {
	t.Helper()
	b, err := ndp.MarshalMessage(ra)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func servers(texts ...string) []netip.Addr {
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all
}

func TestParse(t *testing.T) {
	b := message(t, &ndp.RouterAdvertisement{
		ManagedConfiguration: true,
		Options: []ndp.Option{
			&ndp.RecursiveDNSServer{Lifetime: time.Minute, Servers: servers("2001:db8::53", "::1", "ff02::1", "fe80::53")},
			&ndp.RecursiveDNSServer{Lifetime: 0, Servers: servers("2001:db8::54", "2001:db8::53", "fe80::53")},
		},
	})
	a, err := Parse(b, router, 255, "eth0")
	want := []Server{
		{netip.MustParseAddr("2001:db8::53"), time.Minute},
		{netip.MustParseAddr("fe80::53%eth0"), time.Minute},
		{netip.MustParseAddr("2001:db8::54"), 0},
	}
	if err != nil || !a.Managed || a.Other || a.Router != router.WithZone("eth0") || !slices.Equal(a.DNS, want) {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRefused(t *testing.T) {
	b := message(t, &ndp.RouterAdvertisement{})
	for name, parse := range map[string]func() (Advertisement, error){
		"passed on":          func() (Advertisement, error) { return Parse(b, router, 254, "eth0") },
		"not from this link": func() (Advertisement, error) { return Parse(b, netip.MustParseAddr("2001:db8::1"), 255, "eth0") },
		"cut short":          func() (Advertisement, error) { return Parse(b[:10], router, 255, "eth0") },
		"something else": func() (Advertisement, error) {
			solicitation, err := ndp.MarshalMessage(&ndp.RouterSolicitation{})
			if err != nil {
				t.Fatal(err)
			}
			return Parse(solicitation, router, 255, "eth0")
		},
	} {
		if a, err := parse(); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

func TestNumberOfServersIsBounded(t *testing.T) {
	many := make([]netip.Addr, 15)
	for i := range many {
		many[i] = netip.AddrFrom16([16]byte{0x20, 1, 15: byte(i + 1)})
	}
	a, err := Parse(message(t, &ndp.RouterAdvertisement{Options: []ndp.Option{
		&ndp.RecursiveDNSServer{Lifetime: time.Minute, Servers: many},
	}}), router, 255, "eth0")
	if err != nil || len(a.DNS) != maxServers {
		t.Errorf("%d servers, %v", len(a.DNS), err)
	}
}

// The kernel heeds an announcement in which an option is wrong: it must count.
func TestNetworks(t *testing.T) {
	prefix := func(text string) ndp.Option {
		p := netip.MustParsePrefix(text)
		return &ndp.PrefixInformation{Prefix: p.Addr(), PrefixLength: uint8(p.Bits()), OnLink: true, ValidLifetime: time.Hour}
	}
	b := message(t, &ndp.RouterAdvertisement{ManagedConfiguration: true, Options: []ndp.Option{
		prefix("2001:db8::/64"), prefix("2001:db8:1::/48"), prefix("2001:db8::/64"),
	}})
	// A list of domains without any.
	b = append(b, 31, 1, 0, 0, 0, 0, 0, 0)
	b = append(b, message(t, &ndp.RouterAdvertisement{Options: []ndp.Option{prefix("2001:db8:2::/64")}})[headerSize:]...)
	if _, err := ndp.ParseMessage(b); err == nil {
		t.Fatal("the option isn't wrong")
	}
	a, err := Parse(b, router, 255, "eth0")
	want := []netip.Prefix{
		netip.MustParsePrefix("2001:db8::/64"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("2001:db8:2::/64"),
	}
	if err != nil || !a.Managed || !slices.Equal(a.Networks, want) {
		t.Errorf("%+v, %v", a, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(message(f, &ndp.RouterAdvertisement{}))
	f.Add(message(f, &ndp.RouterAdvertisement{OtherConfiguration: true, Options: []ndp.Option{
		&ndp.RecursiveDNSServer{Lifetime: time.Minute, Servers: servers("2001:db8::53", "fe80::1")},
	}}))
	f.Add(message(f, &ndp.RouterAdvertisement{Options: []ndp.Option{
		&ndp.PrefixInformation{Prefix: netip.MustParseAddr("2001:db8::"), PrefixLength: 64, OnLink: true},
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Parse(b, router, 255, "eth0")
		if err != nil {
			return
		}
		for _, s := range a.DNS {
			if !usable(s.Address) || s.Address.IsLinkLocalUnicast() && s.Address.Zone() != "eth0" {
				t.Errorf("server %v", s)
			}
		}
		if len(a.DNS) > maxServers {
			t.Errorf("%d servers", len(a.DNS))
		}
		for _, p := range a.Networks {
			if !p.IsValid() || p != p.Masked() {
				t.Errorf("network %v", p)
			}
		}
	})
}
