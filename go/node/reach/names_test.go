package reach

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/tests/namespace"
)

// nameServer runs a name server on the other machine for the test's time, and has the
// test's resolver ask it. It knows near.example, and says nothing of silent.example.
func nameServer(t *testing.T, far *namespace.Namespace) {
	t.Helper()
	// A folder of the test's own stands in for /etc in its mount namespace.
	if err := unix.Mount("tmpfs", "/etc", "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("/etc", 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile("/etc/resolv.conf", []byte("nameserver 192.0.2.1\nsearch .\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var conn net.PacketConn
	if err := far.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", "192.0.2.1:53")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = conn.Close()
		<-ended
	})
	go func() {
		defer close(ended)
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if reply := answerTo(buffer[:n]); reply != nil {
				_, _ = conn.WriteTo(reply, from) // The test sees what is missing.
			}
		}
	}()
}

// answerTo answers a query, nil with nothing.
func answerTo(query []byte) []byte {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil || len(m.Questions) != 1 {
		return nil
	}
	q := m.Questions[0]
	m.Response, m.Additionals = true, nil
	header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: 1}
	switch name := q.Name.String(); {
	case name == "silent.example.":
		return nil
	case name != "near.example.":
		m.RCode = dnsmessage.RCodeNameError
	case q.Type == dnsmessage.TypeA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AResource{A: [4]byte{192, 0, 2, 1}}}}
	case q.Type == dnsmessage.TypeAAAA:
		m.Answers = []dnsmessage.Resource{{Header: header, Body: &dnsmessage.AAAAResource{AAAA: [16]byte{0x20, 0x01, 0x0d, 0xb8, 15: 1}}}}
	}
	reply, err := m.Pack()
	if err != nil {
		return nil
	}
	return reply
}

func TestNames(t *testing.T) {
	nameServer(t, network(t))
	got := ping(t, Prober{}, "near.example")
	found := map[string]bool{}
	for _, a := range got.Addresses {
		found[a.Address.String()] = len(a.Tries) == echoes && a.Tries[0].Error == "" && a.Tries[1].Error == "" && a.Tries[2].Error == ""
	}
	if len(got.Addresses) != 2 || !found["192.0.2.1"] || !found["2001:db8::1"] || got.Lookup <= 0 || got.LookupError != "" {
		t.Errorf("%+v", got)
	}
	got = ping(t, Prober{}, "missing.example:80")
	if got.LookupError != "192.0.2.1:53: no such host" || len(got.Addresses) != 0 {
		t.Errorf("%+v", got)
	}
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	got, err := Prober{}.Ping(ctx, message.Ping{Target: "silent.example"})
	if err != nil || got.LookupError == "" || strings.Contains(got.LookupError, "silent.example") || got.Lookup <= 0 || len(got.Addresses) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
