// Package health collects what a node says about itself: its details for pcctl node
// info, and its line in pcctl status.
package health

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/sys/efivar"
	"powercloud.unidatum.com/go/sys/kernel"
	"powercloud.unidatum.com/go/sys/usage"
)

// interval is the time between two looks at how busy the processors are.
const interval = 5 * time.Second

// mebibyte is a MiB in bytes.
const mebibyte = 1 << 20

// Identity is who a node is.
type Identity struct {
	// Name is the node's name, ID its ID, and Cluster that of its cluster.
	Name    string
	ID      pki.NodeID
	Cluster keys.ClusterID
	// Authority is the fingerprint of the cluster's CA.
	Authority pki.Fingerprint
	// CertificateExpires is the last second in which the node's certificate is valid.
	CertificateExpires time.Time
}

// Config is what a Health works with. Its functions are called for each answer, by
// several goroutines at once, and return quickly.
type Config struct {
	// Version is the release that the node runs, or "dev".
	Version string
	// Sysfs and Proc are where the file systems of these names are mounted; /sys and
	// /proc when "".
	Sysfs, Proc string
	// Identity returns who the node is.
	Identity func() (Identity, error)
	// State returns where the node keeps its state. With an error, it returns what is
	// known of it.
	State func() (message.State, error)
	// Membership and Revocations return the serials of the lists that the node holds,
	// 0 for none; when nil, it holds none.
	Membership, Revocations func() uint64
	// Mesh returns the node's part of the mesh; when nil, it isn't configured.
	Mesh func() *message.Mesh
	// Apps counts the node's apps, and Locations the storage locations that it serves;
	// when nil, there are none.
	Apps      func() message.Apps
	Locations func() int
	// After waits; [time.After] when nil.
	After func(time.Duration) <-chan time.Time
}

// Health collects the facts. Create one with New; Run looks every few seconds how busy
// the processors are.
type Health struct {
	config Config

	mu   sync.Mutex
	last usage.CPU // the zero value before the first reading
	busy float64   // in percent, up to the last reading
}

// New returns a Health that hasn't begun.
func New(config Config) *Health {
	config.Sysfs, config.Proc = cmp.Or(config.Sysfs, "/sys"), cmp.Or(config.Proc, "/proc")
	if config.Membership == nil {
		config.Membership = func() uint64 { return 0 }
	}
	if config.Revocations == nil {
		config.Revocations = func() uint64 { return 0 }
	}
	if config.Mesh == nil {
		config.Mesh = func() *message.Mesh { return nil }
	}
	if config.Apps == nil {
		config.Apps = func() message.Apps { return message.Apps{} }
	}
	if config.Locations == nil {
		config.Locations = func() int { return 0 }
	}
	if config.After == nil {
		config.After = time.After
	}
	return &Health{config: config}
}

// Run looks how busy the processors are until ctx is done.
func (h *Health) Run(ctx context.Context) error {
	for {
		if err := h.sample(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-h.config.After(interval):
		}
	}
}

// sample finds how busy the processors were since the last time: at first, since the
// machine was started.
func (h *Health) sample() error {
	now, err := usage.ReadCPU(h.config.Proc)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy, h.last = now.Percent(h.last), now
	return nil
}

// cpu returns what was found last. Before Run has found anything it looks itself.
func (h *Health) cpu() (message.CPU, error) {
	h.mu.Lock()
	none := h.last == usage.CPU{}
	h.mu.Unlock()
	var err error
	if none {
		err = h.sample()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return message.CPU{Count: h.last.Count, Busy: h.busy}, err
}

// Info returns the node's details. With an error it returns those that could be
// found: a node that has lost a part of itself can still be looked at.
func (h *Health) Info() (message.Info, error) {
	who, identity := h.config.Identity()
	state, space := h.config.State()
	boot, firmware := efivar.Boot(h.config.Sysfs)
	lockdown, lock := kernel.ReadLockdown(h.config.Sysfs)
	release, uname := kernel.Release()
	uptime, clock := kernel.Uptime()
	info := message.Info{
		Name: who.Name, ID: who.ID, Cluster: who.Cluster,
		Architecture: runtime.GOARCH, Kernel: release, Boot: string(boot), Lockdown: string(lockdown),
		State: state, Version: h.config.Version, Uptime: seconds(uptime),
		CertificateExpires: who.CertificateExpires.UTC(), Authority: who.Authority.Short(),
		Membership: h.config.Membership(), Revocations: h.config.Revocations(), Mesh: h.config.Mesh(),
	}
	return info, errors.Join(identity, space, firmware, lock, uname, clock)
}

// Status returns the node's line. With an error it returns what could be found of it.
func (h *Health) Status() (message.Status, error) {
	who, identity := h.config.Identity()
	state, space := h.config.State()
	uptime, clock := kernel.Uptime()
	cpu, processors := h.cpu()
	memory, mem := usage.ReadMemory(h.config.Proc)
	status := message.Status{
		Name: who.Name, ID: who.ID,
		Architecture: runtime.GOARCH, Version: h.config.Version, Uptime: seconds(uptime),
		State: state, CertificateExpires: who.CertificateExpires.UTC(),
		CPU:    cpu,
		Memory: message.Memory{Used: int64(memory.Used / mebibyte), Total: int64(memory.Total / mebibyte)},
		Mesh:   reached(h.config.Mesh()), Apps: h.config.Apps(), Locations: h.config.Locations(),
	}
	return status, errors.Join(identity, space, clock, processors, mem)
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// reached counts the peers of a node.
func reached(mesh *message.Mesh) message.Reached {
	if mesh == nil {
		return message.Reached{}
	}
	counts := message.Reached{Peers: len(mesh.Peers)}
	for _, p := range mesh.Peers {
		if p.RoundTrip != nil {
			counts.Reached++
		}
	}
	return counts
}
