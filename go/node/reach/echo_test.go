package reach

import (
	"bytes"
	"testing"

	"golang.org/x/net/icmp"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
)

// packet is an echo message of some type.
func packet(t testing.TB, kind icmp.Type, sequence int, data []byte) []byte {
	t.Helper()
	m := icmp.Message{Type: kind, Body: &icmp.Echo{ID: 7, Seq: sequence, Data: data}}
	b, err := m.Marshal(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestAnswers(t *testing.T) {
	token := []byte("0123456789abcdef")
	for name, c := range map[string]struct {
		packet []byte
		family family
		want   bool
	}{
		"IPv4":             {packet(t, ipv4.ICMPTypeEchoReply, 2, token), version4, true},
		"IPv6":             {packet(t, ipv6.ICMPTypeEchoReply, 2, token), version6, true},
		"a request":        {packet(t, ipv4.ICMPTypeEcho, 2, token), version4, false},
		"an IPv6 request":  {packet(t, ipv6.ICMPTypeEchoRequest, 2, token), version6, false},
		"an earlier one":   {packet(t, ipv4.ICMPTypeEchoReply, 1, token), version4, false},
		"another token":    {packet(t, ipv4.ICMPTypeEchoReply, 2, []byte("0123456789abcdeF")), version4, false},
		"a part of it":     {packet(t, ipv4.ICMPTypeEchoReply, 2, token[:15]), version4, false},
		"more than it":     {packet(t, ipv4.ICMPTypeEchoReply, 2, append([]byte("x"), token...)), version4, false},
		"no data":          {packet(t, ipv4.ICMPTypeEchoReply, 2, nil), version4, false},
		"cut":              {packet(t, ipv4.ICMPTypeEchoReply, 2, token)[:6], version4, false},
		"nothing":          {nil, version4, false},
		"of another kind":  {packet(t, ipv4.ICMPTypeEchoReply, 2, token), version6, false},
		"an IPv6 one as 4": {packet(t, ipv6.ICMPTypeEchoReply, 2, token), version4, false},
	} {
		if got := answers(c.packet, c.family, 2, token); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func FuzzAnswers(f *testing.F) {
	token := []byte("0123456789abcdef")
	f.Add(packet(f, ipv4.ICMPTypeEchoReply, 2, token), false)
	f.Add(packet(f, ipv6.ICMPTypeEchoReply, 2, token), true)
	f.Add(packet(f, ipv4.ICMPTypeEcho, 2, token), false)
	f.Add([]byte{3, 1, 0, 0, 0, 0, 0, 0, 0x45}, false)
	f.Fuzz(func(t *testing.T, b []byte, six bool) {
		version := version4
		if six {
			version = version6
		}
		if answers(b, version, 2, token) && !bytes.HasSuffix(b, token) {
			t.Errorf("%x answers", b)
		}
	})
}
