// Package dhcp gives machines a network whose DHCP server a test chooses.
package dhcp

import (
	"testing"

	"powercloud.unidatum.com/tests/dnsmasq"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/namespace"
)

const (
	// Server is the address of the network's DHCP server, and of what else a test runs
	// in the namespace that it is in.
	Server = "192.0.2.1"
	// Leased is the only address that the server leases.
	Leased = "192.0.2.100"
	// Interface is what the namespace reaches the network by.
	Interface = "tap0"
)

// Start makes a network with a DHCP server, which gets further options of dnsmasq's, and
// returns it with the namespace that the server is in. Both last as long as the test. It
// must be called in a process that [namespace.Main] runs.
func Start(t *testing.T, options ...string) (*machine.Network, *namespace.Namespace) {
	t.Helper()
	servers := namespace.New(t)
	network := machine.NewNetwork(t)
	if err := servers.Do(func() error { return network.Tap(Interface) }); err != nil {
		t.Fatal(err)
	}
	namespace.Address(t, servers, Interface, Server+"/24")
	namespace.Plug(t, servers, Interface, true)
	dnsmasq.Start(t, servers, append([]string{"--interface=" + Interface, "--bind-interfaces",
		"--dhcp-range=" + Leased + "," + Leased + ",255.255.255.0,1h"}, options...)...)
	return network, servers
}
