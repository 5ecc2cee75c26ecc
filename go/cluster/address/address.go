// Package address has the addresses at which nodes are reached: a host, which is an
// IP address or a DNS name, and a port.
package address

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// The ports of nodes.
const (
	// APIPort is the TCP port of the node API.
	APIPort = 7443
	// MeshPort is the UDP port of a node's WireGuard.
	MeshPort = 51820
)

// maxName is the longest DNS name in bytes, without the dot at its end.
const maxName = 253

// Address is a host and a port. The zero value is no address. Equal addresses are
// written in the same way, so that they can be compared with ==.
type Address struct {
	host string
	port uint16
}

// Parse reads HOST:PORT or, unless defaultPort is 0, HOST. A host is an IP address,
// in brackets if it is one of IPv6 with a port behind it, or a DNS name. Only ASCII
// letters, digits, dashes and underscores make a name.
func Parse(s string, defaultPort uint16) (Address, error) {
	host, port, err := split(s, defaultPort)
	if err == nil {
		host, err = canonicalHost(host)
	}
	if err != nil {
		const shown = 300
		if len(s) > shown {
			s = s[:shown] + "..."
		}
		return Address{}, fmt.Errorf("%q is no address HOST:PORT: %w", s, err)
	}
	return Address{host, port}, nil
}

// split takes the port off.
func split(s string, defaultPort uint16) (host string, port uint16, err error) {
	bracketed := strings.HasPrefix(s, "[")
	colons := strings.Count(s, ":")
	switch {
	case bracketed && strings.HasSuffix(s, "]"):
		host = s[1 : len(s)-1]
	case !bracketed && colons != 1:
		host = s // A name, or an address of IPv6.
	default:
		var text string
		if host, text, err = net.SplitHostPort(s); err != nil {
			return "", 0, errors.New("its brackets or colons are wrong")
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 || strconv.FormatUint(n, 10) != text {
			return "", 0, errors.New("its port is no number from 1 to 65535")
		}
		port = uint16(n)
	}
	if strings.Contains(host, ":") != bracketed && (bracketed || port != 0) {
		return "", 0, errors.New("brackets are for IPv6 addresses only")
	}
	if port == 0 {
		if defaultPort == 0 {
			return "", 0, errors.New("it has no port")
		}
		port = defaultPort
	}
	return host, port, nil
}

// canonicalHost checks a host and returns the one form of it.
func canonicalHost(host string) (string, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		ip = ip.Unmap()
		switch {
		case ip.Zone() != "":
			return "", errors.New("a zone means something on one machine only")
		case ip.IsUnspecified() || ip.IsMulticast() || ip == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return "", errors.New("its IP address is not that of one machine")
		}
		return ip.String(), nil
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name == "" {
		return "", errors.New("it has no host")
	}
	if len(name) > maxName {
		return "", fmt.Errorf("its name has more than %d bytes", maxName)
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if !validLabel(label) {
			return "", errors.New("its host is neither an IP address nor a DNS name")
		}
	}
	// No top-level domain is a number, but a mistyped IP address ends in one.
	if strings.Trim(labels[len(labels)-1], "0123456789") == "" {
		return "", errors.New("its host is neither an IP address nor a DNS name")
	}
	return name, nil
}

func validLabel(label string) bool {
	if label == "" || len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") {
		return false
	}
	for _, c := range []byte(label) {
		if !(c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// Host returns the host: an IP address without brackets, or a name in lower case
// without a dot at its end.
func (a Address) Host() string { return a.host }

// Port returns the port, 1 to 65535.
func (a Address) Port() uint16 { return a.port }

// WithPort returns the address with another port of the same host.
func (a Address) WithPort(port uint16) Address {
	if a.IsZero() {
		return a
	}
	return Address{a.host, port}
}

// IsZero reports whether it is no address.
func (a Address) IsZero() bool { return a == Address{} }

// IsLocal reports whether the host is only ever the machine itself: localhost, or a
// loopback address.
func (a Address) IsLocal() bool {
	if a.host == "localhost" || strings.HasSuffix(a.host, ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(a.host)
	return err == nil && ip.IsLoopback()
}

// String returns HOST:PORT, with an IPv6 address in brackets, or nothing for no
// address.
func (a Address) String() string {
	if a.IsZero() {
		return ""
	}
	return net.JoinHostPort(a.host, strconv.Itoa(int(a.port)))
}

// MarshalText returns what String does.
func (a Address) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText reads what MarshalText writes of an address, and nothing else.
func (a *Address) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text), 0)
	if err != nil {
		return err
	}
	if parsed.String() != string(text) {
		return fmt.Errorf("the address %q is not in the form %q", text, parsed)
	}
	*a = parsed
	return nil
}
