package nodes

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/api/message"
)

// written is what WriteInfo writes.
func written(t testing.TB, i message.Info) string {
	t.Helper()
	var b strings.Builder
	if err := WriteInfo(&b, "home-1", i, now); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestInfoOfTheManual(t *testing.T) {
	want := `name         my-node
id           262c2fdc861a9cf2
cluster      66770d7cd1f5522f114c0381e8fe93e1
arch         amd64
kernel       6.1.0-50-amd64
boot         UEFI, Secure Boot off
lockdown     none
state        RAM (lost at reboot)
version      dev
uptime       1530h17m52s
certificate  expires 2027-10-29 01:14 UTC
cluster CA   8471c8d7afafd600
membership   list serial 1
mesh         not configured yet
`
	if got := written(t, info(t)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestInfoWithEverything(t *testing.T) {
	i := info(t)
	i.Name, i.Kernel, i.Boot, i.Lockdown = "home-1", "6.1.187", "UEFI, Secure Boot on", "confidentiality"
	i.State = message.State{
		Kind: message.StateEncrypted, Size: 7811 << 20, Free: 7690<<20 + 5,
		Protection: "authenticated: AES-256-XTS with HMAC-SHA256 per sector (dm-integrity)",
	}
	i.Version, i.Uptime, i.Membership, i.Revocations = "v2026.12.01", 52, 12, 3
	i.Mesh = &message.Mesh{
		Address: netip.MustParseAddr("fdd5:f552:ce70::fa8a:dc53:910a:6a79"), Port: 51820,
		Peers: []message.Peer{
			{
				Name: "cloud-1", Address: netip.MustParseAddr("fdd5:f552:ce70::3c91:e07d:5b2a:8f14"), Endpoint: "203.0.113.7:51820",
				Handshake: pointer(int64(12)), RoundTrip: pointer(18400 * time.Microsecond),
			},
			{
				Name: "home-2", Address: netip.MustParseAddr("fdd5:f552:ce70::77e2:1ab:9c3d:4e55"), Endpoint: "203.0.113.7:51822", Relay: "cloud-1",
				Handshake: pointer(int64(91)), RoundTrip: pointer(41 * time.Millisecond),
			},
			{Name: "new-1", Address: netip.MustParseAddr("fdd5:f552:ce70::1")},
			{Name: "new-2", Address: netip.MustParseAddr("fdd5:f552:ce70::2"), Error: "connection refused"},
		},
	}
	want := `name         home-1
id           262c2fdc861a9cf2
cluster      66770d7cd1f5522f114c0381e8fe93e1
arch         amd64
kernel       6.1.187
boot         UEFI, Secure Boot on
lockdown     confidentiality
state        encrypted volume, 7811 MiB (7690 MiB free)
volume       authenticated: AES-256-XTS with HMAC-SHA256 per sector (dm-integrity)
version      v2026.12.01
uptime       52s
certificate  expires 2027-10-29 01:14 UTC
cluster CA   8471c8d7afafd600
membership   list serial 12
revocations  list serial 3
mesh         fdd5:f552:ce70:0:fa8a:dc53:910a:6a79 (WireGuard port 51820)
PEER     MESH ADDRESS                          ENDPOINT                           HANDSHAKE  API OVER MESH
cloud-1  fdd5:f552:ce70:0:3c91:e07d:5b2a:8f14  203.0.113.7:51820                  12s ago    ok, 18.4 ms
home-2   fdd5:f552:ce70:0:77e2:1ab:9c3d:4e55   203.0.113.7:51822 (relay cloud-1)  1m31s ago  ok, 41.0 ms
new-1    fdd5:f552:ce70::1                     -                                  never      no answer
new-2    fdd5:f552:ce70::2                     -                                  never      connection refused
`
	if got := written(t, i); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	i.Mesh.Peers = nil
	if got := written(t, i); !strings.HasSuffix(got, "(WireGuard port 51820)\n") {
		t.Errorf("without peers:\n%s", got)
	}
}

func TestState(t *testing.T) {
	for want, s := range map[string]message.State{
		"RAM (lost at reboot)":                       {Kind: message.StateRAM, Size: 1 << 30},
		"encrypted volume, 7811 MiB (7690 MiB free)": {Kind: message.StateEncrypted, Size: 7811 << 20, Free: 7690 << 20},
		"encrypted volume, 1000 MiB (90 MiB free), still growing into its disk: 12% done": {
			Kind: message.StateEncrypted, Size: 1000 << 20, Free: 90 << 20, Filling: &message.Filling{Filled: 129, Total: 1000},
		},
		"encrypted volume, 0 MiB (0 MiB free), still growing into its disk: 100% done": {
			Kind: message.StateEncrypted, Filling: &message.Filling{Filled: 1 << 62, Total: 1},
		},
		"encrypted volume, 0 MiB (0 MiB free)":                {Kind: message.StateEncrypted, Filling: &message.Filling{}},
		"of a kind that this pcctl doesn't know: punch cards": {Kind: "punch cards"},
	} {
		if got := state(s); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

func TestUptime(t *testing.T) {
	for seconds, want := range map[int64]string{
		0: "0s", 59: "59s", 60: "1m0s", 5*60*60 + 12*60 + 3: "5h12m3s", 72*60*60 + 4*60 + 10: "72h4m10s",
		-1: "0s", 1<<63 - 1: "2562047h47m16s",
	} {
		if got := uptime(seconds); got != want {
			t.Errorf("%d is %q, want %q", seconds, got, want)
		}
	}
}

func TestCertificate(t *testing.T) {
	const hint = " (run 'pcctl --repo ... node renew a')"
	for want, expires := range map[string]time.Time{
		"expires 2027-01-01 00:00 UTC":        time.Date(2027, 1, 1, 2, 0, 59, 0, time.FixedZone("", 2*60*60)),
		"expires 2026-11-28 01:15 UTC":        after(30).Add(time.Minute),
		"expires 2026-11-28 01:14 UTC" + hint: after(30),
		"expires 2026-10-29 01:14 UTC" + hint: now.Add(time.Second),
		"EXPIRED 2026-10-29 01:13 UTC" + hint: now.Add(-time.Minute),
		"EXPIRED 0001-01-01 00:00 UTC" + hint: {},
	} {
		if got := certificate(expires, "a", now); got != want {
			t.Errorf("%v is %q, want %q", expires, got, want)
		}
	}
}

// broken is a standard output that can't be written to.
type broken struct{}

var errBroken = errors.New("the pipe is closed")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestBrokenOutput(t *testing.T) {
	for name, err := range map[string]error{
		"info":            WriteInfo(broken{}, "home-1", info(t), now),
		"status":          WriteStatus(broken{}, nil, now),
		"status, as JSON": WriteStatusJSON(broken{}, []Answer{{Name: "a"}}, now),
	} {
		var output *command.OutputError
		if !errors.As(err, &output) || !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// harmless fails if a text could do something to a terminal.
func harmless(t *testing.T, text string) {
	t.Helper()
	if i := strings.IndexFunc(text, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }); i >= 0 {
		t.Errorf("a control character at %d of %q", i, text)
	}
}

// FuzzInfo has nodes say anything: each detail stays on its line, and no control
// character reaches the terminal.
func FuzzInfo(f *testing.F) {
	i := info(f)
	f.Add([]byte(compact(f, i)))
	i.Kernel, i.State.Protection, i.Boot = "\x1b[31m\n\r\t\x00", "a\tb\n\nc\v\f", "\xff\u202e\u2028"
	i.Mesh = &message.Mesh{Peers: []message.Peer{{Name: "\n\n", Error: "\x1b[2J"}, {Relay: "a\tb"}}}
	f.Add([]byte(compact(f, i)))
	f.Add([]byte(`{"mesh":{"address":"fe80::1%\u001b[31m","peers":[{"address":"fe80::1%\n"}]}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var i message.Info
		if json.Unmarshal(b, &i) != nil {
			return
		}
		text := written(t, i)
		harmless(t, text)
		lines := len(fields("home-1", i, now))
		if i.Mesh != nil && len(i.Mesh.Peers) > 0 {
			lines += 1 + len(i.Mesh.Peers)
		}
		if got := strings.Count(text, "\n"); got != lines {
			t.Errorf("%d lines, want %d: %q", got, lines, text)
		}
	})
}

// TestPingedIsHarmless: a node answers with an address whose zone drives terminals.
func TestPingedIsHarmless(t *testing.T) {
	var pinged message.Pinged
	const answer = `{"lookup_error":"\u001b[2J","addresses":[{"address":"fe80::1%\u001b]52;c;AAAA\u0007","tries":[{"error":"\u009b2J"},{}]}]}`
	if err := message.Decode([]byte(answer), &pinged, false); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := writePinged(&b, &pinged); err != nil {
		t.Fatal(err)
	}
	harmless(t, b.String())
	if strings.Count(b.String(), "fe80::1") != 2 {
		t.Errorf("%q", b.String())
	}
}
