// Package resolver tells programs on this machine, Go's resolver among them,
// which name servers to ask: it writes resolv.conf(5). It also has a resolver for Go
// programs that asks nobody where there is none.
package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"powercloud.unidatum.com/go/sys/atomicfile"
)

const (
	// Path is where resolvers look.
	Path = "/etc/resolv.conf"
	// maxServers is how many name servers resolvers read.
	maxServers = 3
)

// errNone says that there is nobody to ask.
var errNone = errors.New("the network has named no name server, and this machine is none")

// New returns a resolver that reads the file at Path. Where that names no name
// server, Go's resolver asks the machine itself, at
// 127.0.0.1 and ::1, where whoever listens there could answer; this one fails at once. A
// program makes it [net.DefaultResolver], which everything asks that connects by name.
//
// No network may name such an address: go/sys/dhcp, go/sys/dhcp6 and go/sys/routerad
// refuse them.
func New() *net.Resolver {
	var dialer net.Dialer
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == "127.0.0.1:53" || address == "[::1]:53" {
			return nil, errNone
		}
		return dialer.DialContext(ctx, network, address)
	}}
}

// Text returns the file's text for name servers, the preferred ones first. A
// name server that doesn't answer within 2 s is passed over; no domain is ever
// added to a name, so that the network can't change what a name means.
func Text(servers []netip.Addr) string {
	var text strings.Builder
	text.WriteString("# Written by pcd; changes are lost.\n")
	for _, server := range servers[:min(len(servers), maxServers)] {
		_, _ = fmt.Fprintf(&text, "nameserver %s\n", server)
	}
	text.WriteString("search .\noptions timeout:2 attempts:2\n")
	return text.String()
}

// Write writes the file whole or not at all.
func Write(path string, servers []netip.Addr) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the name servers: %w", err)
	}
	if err := atomicfile.Write(path, []byte(Text(servers)), 0o644); err != nil {
		return fmt.Errorf("write the name servers: %w", err)
	}
	return nil
}
