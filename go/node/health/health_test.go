package health

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/sys/kernel"
)

// write puts a file into a tree.
func write(t *testing.T, root, name, content string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	// A reader never finds half of a file, as with the kernel.
	if err := os.WriteFile(path+".new", []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// processors writes how long a processor was busy and idle, in hundredths of a second.
func processors(t *testing.T, proc string, busy, idle int) {
	t.Helper()
	line := fmt.Sprintf("%d 0 0 %d 0 0 0 0 0 0\n", busy, idle)
	write(t, proc, "stat", "cpu  "+line+"cpu0 "+line)
}

// machine is a machine of two trees, and who the node on it is.
func machine(t *testing.T) (Config, Identity) {
	t.Helper()
	c := Config{Version: "v2026.12.01", Sysfs: t.TempDir(), Proc: t.TempDir()}
	write(t, c.Sysfs, "kernel/security/lockdown", "none integrity [confidentiality]\n")
	write(t, c.Sysfs, "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\x06\x00\x00\x00\x01")
	write(t, c.Sysfs, "firmware/efi/efivars/SetupMode-8be4df61-93ca-11d2-aa0d-00e098032b8c", "\x06\x00\x00\x00\x00")
	write(t, c.Proc, "meminfo", "MemTotal: 8007680 kB\nMemAvailable: 6774784 kB\n")
	processors(t, c.Proc, 1200, 8800)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	authority, err := pki.FingerprintOf(key)
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := keys.ParseClusterID("66770d7cd1f5522f114c0381e8fe93e1")
	if err != nil {
		t.Fatal(err)
	}
	who := Identity{
		Name: "my-node", ID: authority.NodeID(), Cluster: cluster, Authority: authority,
		CertificateExpires: time.Date(2027, 10, 29, 3, 14, 0, 0, time.FixedZone("", 2*60*60)),
	}
	c.Identity = func() (Identity, error) { return who, nil }
	c.State = func() (message.State, error) {
		return message.State{Kind: message.StateEncrypted, Size: 7811 << 20, Free: 7690 << 20}, nil
	}
	return c, who
}

func TestInfo(t *testing.T) {
	c, who := machine(t)
	c.Membership = func() uint64 { return 3 }
	before, err := kernel.Uptime()
	if err != nil {
		t.Fatal(err)
	}
	got, err := New(c).Info()
	if err != nil {
		t.Fatal(err)
	}
	after, err := kernel.Uptime()
	if err != nil || got.Uptime < seconds(before) || got.Uptime > seconds(after) {
		t.Errorf("%d s, not from %v to %v: %v", got.Uptime, before, after, err)
	}
	release, err := kernel.Release()
	if err != nil {
		t.Fatal(err)
	}
	want := message.Info{
		Name: "my-node", ID: who.ID, Cluster: who.Cluster, Architecture: runtime.GOARCH, Kernel: release,
		Boot: "UEFI, Secure Boot on", Lockdown: "confidentiality",
		State:   message.State{Kind: message.StateEncrypted, Size: 7811 << 20, Free: 7690 << 20},
		Version: "v2026.12.01", Uptime: got.Uptime, CertificateExpires: time.Date(2027, 10, 29, 1, 14, 0, 0, time.UTC),
		Authority: who.ID.String(), Membership: 3,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestStatus(t *testing.T) {
	c, who := machine(t)
	trip := time.Millisecond
	c.Mesh = func() *message.Mesh {
		return &message.Mesh{Peers: []message.Peer{{Name: "a", RoundTrip: &trip}, {Name: "b", Error: "no answer"}}}
	}
	c.Apps = func() message.Apps { return message.Apps{Running: 2, Deployed: 3} }
	c.Locations = func() int { return 2 }
	got, err := New(c).Status()
	if err != nil || got.Uptime == 0 {
		t.Fatal(got, err)
	}
	want := message.Status{
		Name: "my-node", ID: who.ID, Architecture: runtime.GOARCH, Version: "v2026.12.01", Uptime: got.Uptime,
		State:              message.State{Kind: message.StateEncrypted, Size: 7811 << 20, Free: 7690 << 20},
		CertificateExpires: time.Date(2027, 10, 29, 1, 14, 0, 0, time.UTC),
		CPU:                message.CPU{Count: 1, Busy: 12}, Memory: message.Memory{Used: 1204, Total: 7820},
		Mesh: message.Reached{Reached: 1, Peers: 2}, Apps: message.Apps{Running: 2, Deployed: 3}, Locations: 2,
	}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWhatCantBeFound(t *testing.T) {
	c, who := machine(t)
	failure := errors.New("the disk is gone")
	c.State = func() (message.State, error) { return message.State{Kind: message.StateEncrypted}, failure }
	write(t, c.Sysfs, "kernel/security/lockdown", "")
	write(t, c.Sysfs, "firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "")
	write(t, c.Proc, "meminfo", "")
	write(t, c.Proc, "stat", "")
	h := New(c)
	info, err := h.Info()
	if !errors.Is(err, failure) || info.ID != who.ID || info.State.Kind != message.StateEncrypted || info.Kernel == "" ||
		info.Lockdown != "unknown" || info.Boot != "UEFI, Secure Boot unknown" {
		t.Errorf("%+v, %v", info, err)
	}
	status, err := h.Status()
	if !errors.Is(err, failure) || status.ID != who.ID || status.Uptime == 0 || status.CPU != (message.CPU{}) ||
		!strings.Contains(err.Error(), "memory") || !strings.Contains(err.Error(), "processors") {
		t.Errorf("%+v, %v", status, err)
	}
	if err := h.Run(t.Context()); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v", err)
	}
}

// TestRun has many ask while the processors are looked at.
func TestRun(t *testing.T) {
	c, _ := machine(t)
	waits := make(chan chan time.Time)
	c.After = func(d time.Duration) <-chan time.Time {
		if d != interval {
			t.Errorf("it waits %v", d)
		}
		wait := make(chan time.Time)
		waits <- wait
		return wait
	}
	h := New(c)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	busy := func() float64 {
		var asking sync.WaitGroup
		for range 10 {
			asking.Go(func() {
				if _, err := h.Status(); err != nil {
					t.Error(err)
				}
			})
		}
		asking.Wait()
		status, err := h.Status()
		if err != nil {
			t.Error(err)
		}
		return status.CPU.Busy
	}
	wait := <-waits
	if got := busy(); got != 12 {
		t.Errorf("since the start: %v%%", got)
	}
	for _, next := range []struct {
		busy, idle int
		want       float64
	}{{1700, 8800, 100}, {1700, 9300, 0}, {1825, 9675, 25}} {
		processors(t, c.Proc, next.busy, next.idle)
		if got := busy(); got == next.want {
			t.Errorf("%v%% before the time", got)
		}
		wait <- time.Time{}
		wait = <-waits
		if got := busy(); got != next.want {
			t.Errorf("%v%%, want %v%%", got, next.want)
		}
	}
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
