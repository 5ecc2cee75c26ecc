package message

import (
	"net/netip"
	"time"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

// Info is a node's details, as pcctl node info shows them.
type Info struct {
	// Name is the node's name, ID its ID and Cluster that of its cluster.
	Name    string         `json:"name"`
	ID      pki.NodeID     `json:"id"`
	Cluster keys.ClusterID `json:"cluster"`
	// Architecture is that of the node's processors, by Go's name: "amd64", "arm64".
	Architecture string `json:"arch"`
	// Kernel is the kernel's release, as uname -r prints it.
	Kernel string `json:"kernel"`
	// Boot is how the node was started, in words: "UEFI, Secure Boot on".
	Boot string `json:"boot"`
	// Lockdown is the kernel's lockdown mode: "none", "integrity", "confidentiality"
	// or "unknown".
	Lockdown string `json:"lockdown"`
	// State is where the node keeps its state.
	State State `json:"state"`
	// Version is the release that the node runs, or "dev".
	Version string `json:"version"`
	// Uptime is the time since the node was started, in whole seconds.
	Uptime int64 `json:"uptime_seconds"`
	// CertificateExpires is the last second in which the node's certificate is valid,
	// in UTC.
	CertificateExpires time.Time `json:"certificate_expires"`
	// Authority is the short form of the fingerprint of the cluster's CA: 16
	// hexadecimal digits.
	Authority string `json:"cluster_ca"`
	// Membership and Revocations are the serials, from 1 on, of the membership list
	// and of the revocation list that the node holds; 0 if it holds none.
	Membership  uint64 `json:"membership_serial,omitempty"`
	Revocations uint64 `json:"revocations_serial,omitempty"`
	// Mesh is the node's part of the mesh; nil if it isn't configured yet.
	Mesh *Mesh `json:"mesh,omitempty"`
}

// StateKind is where a node keeps its state.
type StateKind string

// The kinds.
const (
	// StateEncrypted is the encrypted volume on the node's disk.
	StateEncrypted StateKind = "encrypted"
	// StateRAM is the node's memory: a reboot loses it.
	StateRAM StateKind = "ram"
	// StateFolder is a folder of an ordinary Linux on which pcd runs as a program.
	StateFolder StateKind = "folder"
)

// State is where a node keeps its state, and how much room there is.
type State struct {
	Kind StateKind `json:"kind"`
	// Size is that of the volume or of the file system, and Free what can still be
	// written, in bytes. Both are 0 if they aren't known.
	Size int64 `json:"size_bytes,omitempty"`
	Free int64 `json:"free_bytes,omitempty"`
	// Filling is how far the volume has grown into its disk; nil when it is done, and
	// where there is none.
	Filling *Filling `json:"filling,omitempty"`
	// Protection is how the volume is encrypted and authenticated, in words; "" where
	// there is none.
	Protection string `json:"protection,omitempty"`
}

// Filling is how much of a volume has been filled with zeros so far.
type Filling struct {
	// Filled is how many of Total bytes have.
	Filled int64 `json:"filled_bytes"`
	Total  int64 `json:"total_bytes"`
}

// Mesh is a node's part of the mesh.
type Mesh struct {
	// Address is the node's address in the mesh.
	Address netip.Addr `json:"address"`
	// Port is the UDP port of its WireGuard.
	Port uint16 `json:"port"`
	// Peers are the other nodes, by name.
	Peers []Peer `json:"peers"`
}

// Peer is another node, as a node sees it.
type Peer struct {
	// Name is its name, and Address its address in the mesh.
	Name    string     `json:"name"`
	Address netip.Addr `json:"address"`
	// Endpoint is the address that WireGuard sends to, IP:PORT; "" if none is known.
	Endpoint string `json:"endpoint,omitempty"`
	// Relay is the name of the node that relays to it; "" if none does.
	Relay string `json:"relay,omitempty"`
	// Handshake is the age of WireGuard's last handshake with it, in whole seconds;
	// nil if there was none.
	Handshake *int64 `json:"handshake_seconds,omitempty"`
	// RoundTrip is how long its API took to answer over the mesh, in nanoseconds; nil
	// if it doesn't answer.
	RoundTrip *time.Duration `json:"round_trip_ns,omitempty"`
	// Error says why it doesn't answer.
	Error string `json:"error,omitempty"`
}
