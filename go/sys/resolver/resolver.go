// Package resolver tells programs on this machine, Go's resolver among them,
// which name servers to ask: it writes resolv.conf(5).
package resolver

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
)

const (
	// Path is where resolvers look.
	Path = "/etc/resolv.conf"
	// maxServers is how many name servers resolvers read.
	maxServers = 3
)

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

// Write writes the file whole or not at all. It needs no sync: it is in memory,
// and is written anew at each boot.
func Write(path string, servers []netip.Addr) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("write the name servers: %w", err)
	}
	temporary := path + ".new"
	err := os.WriteFile(temporary, []byte(Text(servers)), 0o644)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		err = fmt.Errorf("write the name servers: %w", err)
		if remove := os.Remove(temporary); remove != nil && !errors.Is(remove, os.ErrNotExist) {
			err = errors.Join(err, remove)
		}
	}
	return err
}
