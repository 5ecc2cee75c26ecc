package link

import (
	"math"
	"net/netip"
	"testing"
	"time"
)

func TestBroadcast(t *testing.T) {
	for prefix, want := range map[string]string{
		"192.0.2.5/24": "192.0.2.255", "10.1.2.3/9": "10.127.255.255", "192.0.2.9/30": "192.0.2.11",
	} {
		if got := broadcast(netip.MustParsePrefix(prefix)).String(); got != want {
			t.Errorf("of %s: %s, want %s", prefix, got, want)
		}
	}
}

func TestSeconds(t *testing.T) {
	for d, want := range map[time.Duration]int{
		0: 1, time.Millisecond: 1, time.Minute: 60, 1<<32*time.Second - 1: math.MaxUint32 - 1, math.MaxInt64: math.MaxUint32 - 1,
	} {
		if got := seconds(d); got != want {
			t.Errorf("%v: %d, want %d", d, got, want)
		}
	}
}

func TestConversions(t *testing.T) {
	for _, text := range []string{"192.0.2.5/24", "2001:db8::1/64", "0.0.0.0/0"} {
		p := netip.MustParsePrefix(text)
		if got, ok := fromNet(toNet(p)); !ok || got != p {
			t.Errorf("%s became %s", p, got)
		}
	}
	if _, ok := fromNet(nil); ok {
		t.Error("nothing is a prefix")
	}
}
