package message

import (
	"time"

	"powercloud.unidatum.com/go/cluster/meshkey"
)

// MeshKey is what the cluster must know of a node for the mesh.
type MeshKey struct {
	// Key is the public key of the node's WireGuard.
	Key meshkey.Public `json:"key"`
}

// Document is a document that the cluster's authority has signed, as package
// go/pki/document reads it.
type Document struct {
	Signed []byte `json:"signed"`
}

// Serial tells which version of a document a node has.
type Serial struct {
	Serial uint64 `json:"serial"`
}

// Certificate is a node's new certificate, in DER.
type Certificate struct {
	Certificate []byte `json:"certificate"`
}

// What Power does.
const (
	Reboot   = "reboot"
	PowerOff = "poweroff"
)

// Power ends the machine's run, or, outside of PowerCloud OS, pcd.
type Power struct {
	// Action is Reboot or PowerOff.
	Action string `json:"action"`
}

// The parts of a node's log.
const (
	// BootCurrent is what was logged since the node was started.
	BootCurrent = "current"
	// BootPrevious is what was logged in the boot before, and the panics and the crashes of
	// pcd's that were found since.
	BootPrevious = "previous"
	// BootPanic are the kernel's panics that were found last.
	BootPanic = "panic"
)

// Logs asks for a part of a node's log.
type Logs struct {
	// Boot is one of the parts.
	Boot string `json:"boot"`
	// Follow asks to go on with what is logged from then on.
	Follow bool `json:"follow,omitempty"`
}

// LogRecord is one entry of a node's log. The answer to Logs is one in each line.
type LogRecord struct {
	// Time is when it was written, by the node's clock; zero where that isn't known.
	Time time.Time `json:"time,omitzero"`
	// Uptime is when it was written since the node was started, in nanoseconds; 0 where
	// that isn't known.
	Uptime time.Duration `json:"uptime_ns,omitempty"`
	// Level is how urgent it is, by syslog's names: "warning".
	Level string `json:"level"`
	// Source is who wrote it: "kernel", or the name of a program.
	Source string `json:"source"`
	// Text is what it says. It can have anything in it that isn't a line's end in JSON.
	Text string `json:"text"`
}
