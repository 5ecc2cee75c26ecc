package resolver

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

func TestWrite(t *testing.T) {
	var servers []netip.Addr
	for _, text := range []string{"192.0.2.53", "fe80::53%eth0", "2001:db8::53", "192.0.2.54"} {
		servers = append(servers, netip.MustParseAddr(text))
	}
	path := filepath.Join(t.TempDir(), "etc", "resolv.conf")
	for _, c := range []struct {
		servers []netip.Addr
		want    string
	}{
		{nil, ""},
		{servers, "nameserver 192.0.2.53\nnameserver fe80::53%eth0\nnameserver 2001:db8::53\n"},
	} {
		if err := Write(path, c.servers); err != nil {
			t.Fatal(err)
		}
		want := "# Written by pcd; changes are lost.\n" + c.want + "search .\noptions timeout:2 attempts:2\n"
		if b, err := os.ReadFile(path); string(b) != want || err != nil {
			t.Errorf("it has %q, %v", b, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); len(entries) != 1 || err != nil {
		t.Errorf("%d files are left, %v", len(entries), err)
	}
	// A folder can't be replaced.
	if err := os.Mkdir(path+".d", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Write(path+".d", nil); err == nil {
		t.Error("a folder was replaced")
	}
}

// TestNoNameServer looks up a name with a file that names no name server, as every part
// of a program does that connects by name.
func TestNoNameServer(t *testing.T) {
	namespace.Enter(t)
	path := filepath.Join(t.TempDir(), "resolv.conf")
	if err := Write(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount(path, Path, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("%s can't be replaced here: %v", Path, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(Path, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	before := net.DefaultResolver
	net.DefaultResolver = New()
	t.Cleanup(func() { net.DefaultResolver = before })
	_, err := (&net.Dialer{}).DialContext(ctx, "tcp", "name.test:443")
	if err == nil || !strings.Contains(err.Error(), errNone.Error()) {
		t.Errorf("without name servers: %v", err)
	}
	if ctx.Err() != nil {
		t.Error("it took more than a minute")
	}
}

// TestOnlyTheMachineItselfIsNotAsked looks at whom the resolver refuses to ask.
func TestOnlyTheMachineItselfIsNotAsked(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1:53": true, "[::1]:53": true, "127.0.0.1:5353": false, "192.0.2.53:53": false, "[2001:db8::53]:53": false,
	} {
		conn, err := New().Dial(t.Context(), "udp", address)
		if err == nil {
			_ = conn.Close()
		}
		// Without a network others can't be asked either.
		if errors.Is(err, errNone) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}
