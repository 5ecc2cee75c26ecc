package dhcp6

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/insomniacslk/dhcp/dhcpv6"
	"github.com/insomniacslk/dhcp/iana"

	"powercloud.unidatum.com/go/sys/lease"
	"powercloud.unidatum.com/go/sys/lease/leasetest"
)

func reply(t testing.TB, options ...dhcpv6.Option) *dhcpv6.Message {
	t.Helper()
	m, err := dhcpv6.NewMessage()
	if err != nil {
		t.Fatal(err)
	}
	m.MessageType = dhcpv6.MessageTypeReply
	m.AddOption(dhcpv6.OptServerID(&dhcpv6.DUIDLL{HWType: iana.HWTypeEthernet, LinkLayerAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}}))
	for _, o := range options {
		m.AddOption(o)
	}
	return m
}

func granted(t1, t2 time.Duration, addresses ...dhcpv6.Option) *dhcpv6.OptIANA {
	return &dhcpv6.OptIANA{T1: t1, T2: t2, Options: dhcpv6.IdentityOptions{Options: addresses}}
}

func address(text string, preferred, valid time.Duration) dhcpv6.Option {
	return &dhcpv6.OptIAAddress{IPv6Addr: net.ParseIP(text), PreferredLifetime: preferred, ValidLifetime: valid}
}

func TestGoodAnswer(t *testing.T) {
	l, err := Parse(reply(t,
		granted(0, 0, address("2001:db8::10", time.Hour, 2*time.Hour)),
		dhcpv6.OptDNS(net.ParseIP("2001:db8::53"), net.ParseIP("fe80::53"), net.ParseIP("::1")),
	), "eth0", true)
	if err != nil {
		t.Fatal(err)
	}
	want := []Address{{netip.MustParseAddr("2001:db8::10"), time.Hour, 2 * time.Hour}}
	dns := []netip.Addr{netip.MustParseAddr("2001:db8::53"), netip.MustParseAddr("fe80::53%eth0")}
	if !slices.Equal(l.Addresses, want) || !slices.Equal(l.DNS, dns) || len(l.Ignored) != 1 ||
		l.Duration != 2*time.Hour || l.Renew != 30*time.Minute || l.Rebind != 48*time.Minute {
		t.Errorf("%+v", l)
	}
}

func TestLies(t *testing.T) {
	var many []dhcpv6.Option
	for i := range 50 {
		many = append(many, address(fmt.Sprintf("2001:db8::%x", i+1), time.Hour, time.Hour))
	}
	l, err := Parse(reply(t, granted(time.Second, time.Second, many...)), "eth0", true)
	if err != nil || len(l.Addresses) != maxAddresses || l.Renew != MinLifetime/2 {
		t.Errorf("many: %+v, %v", l, err)
	}
	noServer := reply(t, granted(0, 0, many[0]))
	noServer.Options.Del(dhcpv6.OptionServerID)
	for name, m := range map[string]*dhcpv6.Message{
		"no addresses":   reply(t),
		"an empty list":  reply(t, granted(0, 0)),
		"loopback":       reply(t, granted(0, 0, address("::1", time.Hour, time.Hour))),
		"multicast":      reply(t, granted(0, 0, address("ff02::1", time.Hour, time.Hour))),
		"link-local":     reply(t, granted(0, 0, address("fe80::1", time.Hour, time.Hour))),
		"IPv4":           reply(t, granted(0, 0, address("192.0.2.1", time.Hour, time.Hour))),
		"odd times":      reply(t, granted(0, 0, address("2001:db8::1", 2*time.Hour, time.Hour))),
		"no server":      noServer,
		"a wrong status": reply(t, &dhcpv6.OptStatusCode{StatusCode: iana.StatusUnspecFail}),
	} {
		if l, err := Parse(m, "eth0", true); !errors.Is(err, ErrUnusable) {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
	refused := reply(t, granted(0, 0, &dhcpv6.OptStatusCode{StatusCode: iana.StatusNoBinding}))
	if _, err := Parse(refused, "eth0", true); !errors.Is(err, errRefused) {
		t.Errorf("a refusal: %v", err)
	}
}

// A lifetime of 0 takes an address back at once: the others stay, and without any the
// lease is over.
func TestAddressTakenBack(t *testing.T) {
	gone, other := address("2001:db8::10", 0, 0), address("2001:db8::11", time.Hour, time.Hour)
	l, err := Parse(reply(t, granted(0, 0, gone, other)), "eth0", true)
	if want := []Address{{netip.MustParseAddr("2001:db8::11"), time.Hour, time.Hour}}; err != nil || !slices.Equal(l.Addresses, want) || len(l.Ignored) > 0 {
		t.Errorf("one of two: %+v, %v", l, err)
	}
	if _, err := Parse(reply(t, granted(0, 0, gone)), "eth0", true); !errors.Is(err, errRefused) {
		t.Errorf("the only one: %v", err)
	}
	loopback := address("::1", 0, 0)
	if _, err := Parse(reply(t, granted(0, 0, loopback)), "eth0", true); !errors.Is(err, ErrUnusable) {
		t.Errorf("one that can't be an interface's: %v", err)
	}
}

func TestSettingsAlone(t *testing.T) {
	l, err := Parse(reply(t, dhcpv6.OptDNS(net.ParseIP("2001:db8::53"))), "eth0", false)
	if err != nil || l.Renew != defaultRefresh || len(l.DNS) != 1 || len(l.Addresses) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	l, err = Parse(reply(t, dhcpv6.OptInformationRefreshTime(time.Second)), "eth0", false)
	if err != nil || l.Renew != leastRefresh {
		t.Errorf("refreshed after a second: %+v, %v", l, err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(reply(f, granted(0, 0, address("2001:db8::10", time.Hour, 2*time.Hour))).ToBytes(), true)
	f.Add(reply(f, dhcpv6.OptDNS(net.ParseIP("fe80::53"))).ToBytes(), false)
	f.Fuzz(func(t *testing.T, b []byte, addresses bool) {
		m, err := dhcpv6.MessageFromBytes(b)
		if err != nil {
			return
		}
		l, err := Parse(m, "eth0", addresses)
		if err != nil {
			return
		}
		if len(l.Addresses) > maxAddresses || len(l.DNS) > maxServers || len(l.NTP) > maxServers ||
			addresses != (len(l.Addresses) > 0) || l.Renew <= 0 || l.Renew > l.Rebind || l.Duration < MinLifetime {
			t.Errorf("%+v", l)
		}
		for _, a := range slices.Concat(l.DNS, l.NTP) {
			if !unicast(a) || a.IsLinkLocalUnicast() && a.Zone() != "eth0" {
				t.Errorf("server %v", a)
			}
		}
	})
}

// play is an exchanger.
type play struct{ leasetest.Play[Lease] }

func (p *play) acquire(context.Context) (*Lease, error)        { return p.Exchange("acquire") }
func (p *play) renew(context.Context, *Lease) (*Lease, error)  { return p.Exchange("renew") }
func (p *play) rebind(context.Context, *Lease) (*Lease, error) { return p.Exchange("rebind") }
func (p *play) inform(context.Context) (*Lease, error)         { return p.Exchange("inform") }

func (p *play) apply(l *Lease) {
	if l == nil {
		p.Record("drop")
		return
	}
	p.Record("use")
}

func TestClient(t *testing.T) {
	silence := errors.New("no answer")
	granted := func() *Lease {
		return &Lease{Times: lease.Times{Duration: 1600 * time.Second, Renew: 800 * time.Second, Rebind: 1400 * time.Second}}
	}
	for name, c := range map[string]struct {
		settings bool
		script   []any
		moves    []time.Duration
		want     string
	}{
		"renewed": {
			script: []any{silence, granted(), granted()},
			want:   "0s acquire, 1s acquire, use, 13m21s renew, use, 26m41s renew",
		},
		"over": {
			script: []any{granted(), silence, silence, silence, silence, silence, silence, silence, silence, granted()},
			want: "0s acquire, use, 13m20s renew, 18m20s renew, 20m50s renew, 22m5s renew, 23m5s renew, " +
				"24m5s rebind, 25m22.5s rebind, 26m22.5s rebind, drop, 26m40s acquire, use, 40m0s renew",
		},
		"refused": {
			script: []any{granted(), errRefused, granted()},
			want:   "0s acquire, use, 13m20s renew, drop, 13m20s acquire, use, 26m40s renew",
		},
		"moved": {
			script: []any{granted(), granted()},
			moves:  []time.Duration{10 * time.Second},
			want:   "0s acquire, use, 10s rebind, use, 13m30s renew",
		},
		"settings": {
			settings: true,
			script:   []any{silence, &Lease{Times: lease.Times{Duration: 2 * time.Hour, Renew: time.Hour, Rebind: time.Hour}}, silence, silence},
			want:     "0s inform, 1s inform, use, 1h0m1s inform, 1h30m1s inform, 1h45m1s inform",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := &play{leasetest.Play[Lease]{Script: c.script, Moves: c.moves}}
			o := Options{Addresses: !c.settings, Apply: p.apply, Moved: p.Moved(), Log: slog.New(slog.DiscardHandler)}
			p.Run(t, newClient(p, p.Clock(), o), c.want)
		})
	}
}
