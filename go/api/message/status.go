package message

import (
	"time"

	"powercloud.unidatum.com/go/pki"
)

// Status is what pcctl status and the console show of a node in a line.
type Status struct {
	// Name is the node's name, and ID its ID.
	Name string     `json:"name"`
	ID   pki.NodeID `json:"id"`
	// Architecture, Version, Uptime, State and CertificateExpires are as in Info.
	Architecture string `json:"arch"`
	Version      string `json:"version"`
	// Uptime is in whole seconds.
	Uptime int64 `json:"uptime_seconds"`
	State  State `json:"state"`
	// CertificateExpires is in UTC.
	CertificateExpires time.Time `json:"certificate_expires"`
	CPU                CPU       `json:"cpu"`
	Memory             Memory    `json:"memory"`
	// Mesh is how many peers the node has and reaches: none before the mesh is
	// configured.
	Mesh Reached `json:"mesh"`
	// Apps is how many apps the node has and runs.
	Apps Apps `json:"apps"`
	// Locations is how many storage locations the node serves.
	Locations int `json:"storage_locations"`
}

// CPU is how busy a node's processors are.
type CPU struct {
	// Count is how many there are.
	Count int `json:"count"`
	// Busy is how busy they were in the last seconds, in percent, from 0 to 100.
	Busy float64 `json:"busy_percent"`
}

// Memory is a node's memory.
type Memory struct {
	// Used is what couldn't be given to others, and Total all of it, in MiB.
	Used  int64 `json:"used_mib"`
	Total int64 `json:"total_mib"`
}

// Reached counts a node's peers in the mesh.
type Reached struct {
	// Reached is how many of Peers answer over the mesh.
	Reached int `json:"reached"`
	Peers   int `json:"peers"`
}

// Apps counts a node's apps.
type Apps struct {
	// Running is how many of those that are Deployed run.
	Running  int `json:"running"`
	Deployed int `json:"deployed"`
}
