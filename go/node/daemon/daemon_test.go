package daemon

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/node/clock"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/logs"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/link"
	"powercloud.unidatum.com/tests/dnsmasq"
	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/output"
)

func TestMain(m *testing.M) { namespace.Main(m) }

func TestBanner(t *testing.T) {
	c := &console{version: "v2026.12.01", shown: lifecycle.Notice{Text: "This node waits.\n"},
		addresses: []netip.Addr{netip.MustParseAddr("192.0.2.10"), netip.MustParseAddr("2001:db8::10")}}
	if got, want := c.banner(), "\nPowerCloud v2026.12.01\naddresses: 192.0.2.10, 2001:db8::10\nThis node waits.\n\n"; got != want {
		t.Errorf("%q", got)
	}
	c.addresses = nil
	if got := c.banner(); !strings.Contains(got, "addresses: no address yet\n") {
		t.Errorf("%q", got)
	}
}

func TestBuildTime(t *testing.T) {
	for version, want := range map[string]string{
		"dev": "2026-11-30", "": "2026-11-30", "v2027.02.03": "2027-02-03", "v2027.02.03-5-g0123456789abcdef-dirty": "2027-02-03",
		"v1999.01.01": "2026-11-30", "v2027.13.01": "2026-11-30",
	} {
		if got := buildTime(version).Format(time.DateOnly); got != want {
			t.Errorf("%q was built on %s, want %s", version, got, want)
		}
	}
}

// still is a clock that isn't moved.
type still struct{}

func (still) Now() time.Time                                         { return time.Now() }
func (still) Step(time.Duration) error                               { return nil }
func (still) Slew(time.Duration, time.Duration, time.Duration) error { return nil }

// connection returns PID 1's end and pcd's.
func connection(t *testing.T) (pid1, pcd *notify.Conn) {
	t.Helper()
	pid1, file, err := notify.Pair()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pid1.Close() })
	pcd, err = notify.FromFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return pid1, pcd
}

// waits is what the console of a node shows at last that waits to be enrolled.
var waits = regexp.MustCompile(`\nPowerCloud v2026\.12\.01\naddresses: 192\.0\.2\.100\n` +
	`PowerCloud node [0-9a-f]{16} is waiting to be enrolled\.\nOn your admin machine run: pcctl node enroll\n` +
	`enrollment code: ([A-Z2-7]{4}-){7}[A-Z2-7]{4}\n\n$`)

func TestNodeOnANetwork(t *testing.T) {
	far := namespace.New(t)
	namespace.Cable(t, "eth0", far, "srv0", "192.0.2.1/24")
	dnsmasq.Start(t, far, "--interface=srv0", "--bind-interfaces", "--dhcp-range=192.0.2.100,192.0.2.100,255.255.255.0,1h",
		"--dhcp-option=option:ntp-server,192.0.2.1")
	pid1, pcd := connection(t)
	console := &output.Text{}
	asked := make(chan string, 10)
	ended := make(chan error)
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	go func() {
		ended <- Run(context.Background(), Config{
			Version: "v2026.12.01", Console: console, Log: log, Notify: pcd,
			Listen: "127.0.0.1:0", State: t.TempDir(), Lines: logs.NewLines(),
			Network: &network.Config{
				Manage:     func(i link.Interface) bool { return strings.HasPrefix(i.Name, "eth") },
				ResolvConf: filepath.Join(t.TempDir(), "resolv.conf"), RunFolder: t.TempDir(), SysctlRoot: "/proc/sys", Log: log,
			},
			Clock: &clock.Config{Clock: still{}, Build: source, Log: log, Query: func(_ context.Context, server string) (clock.Measurement, error) {
				asked <- server
				return clock.Measurement{}, errors.New("no answer")
			}},
		})
	}()
	if m, err := pid1.Receive(); err != nil || m != (notify.Message{Kind: notify.Ready, Text: "v2026.12.01"}) {
		t.Errorf("PID 1 heard %+v, %v", m, err)
	}
	if server := <-asked; server != "192.0.2.1" {
		t.Errorf("the time server %s was asked", server)
	}
	// Two words that it is alive are longer than the banner takes.
	for range 2 {
		if m, err := pid1.Receive(); err != nil || m.Kind != notify.Alive {
			t.Errorf("PID 1 heard %+v, %v", m, err)
		}
	}
	if got := console.String(); !waits.MatchString(got) {
		t.Errorf("the console has %q", got)
	}
	if err := pid1.Send(notify.Message{Kind: notify.Stop, Text: "the test ends"}); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
