package resolver

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

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
