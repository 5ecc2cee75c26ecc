package message

import (
	"net/netip"
	"time"
)

// Ping asks a node to try its network.
type Ping struct {
	// Target is HOST for ICMP echo, or HOST:PORT for a TCP connection. A host is an IP
	// address, in brackets if it is one of IPv6 with a port behind it, or a DNS name.
	Target string `json:"target"`
}

// Pinged is what came of it.
type Pinged struct {
	// Lookup is how long looking up the host's addresses took, in nanoseconds; 0 if
	// the host is an IP address.
	Lookup time.Duration `json:"lookup_ns"`
	// LookupError says on a line why the host has no addresses; "" if it has.
	LookupError string `json:"lookup_error,omitempty"`
	// Addresses are the host's, in the order in which programs try them.
	Addresses []PingedAddress `json:"addresses"`
	// Untried is how many addresses more the host has, which weren't tried.
	Untried int `json:"untried,omitempty"`
}

// PingedAddress is what came of trying an address.
type PingedAddress struct {
	Address netip.Addr `json:"address"`
	// Tries are three for ICMP echo, and one for a TCP connection, or fewer if the
	// time was over.
	Tries []PingTry `json:"tries"`
}

// PingTry is one try.
type PingTry struct {
	// Duration is the time to the answer or to the error, in nanoseconds.
	Duration time.Duration `json:"duration_ns"`
	// Error says on a line why there was no answer; "" if there was.
	Error string `json:"error,omitempty"`
}
