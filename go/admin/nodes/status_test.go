package nodes

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
)

// shown is what WriteStatus writes.
func shown(t testing.TB, answers ...Answer) string {
	t.Helper()
	var b strings.Builder
	if err := WriteStatus(&b, answers, now); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestStatusOfTheManual(t *testing.T) {
	cloud := status()
	cloud.Architecture, cloud.Uptime, cloud.CertificateExpires = "arm64", 72*60*60+4*60+10, after(341.9)
	cloud.CPU, cloud.Memory = message.CPU{Count: 2, Busy: 3}, message.Memory{Used: 412, Total: 3891}
	cloud.Apps, cloud.Locations = message.Apps{Running: 1, Deployed: 1}, 2
	home := status()
	home.Mesh.Reached = 1
	got := shown(t, Answer{Name: "cloud-1", Status: cloud}, Answer{Name: "home-1", Status: home},
		Answer{Name: "vps-1", Err: errors.New("dial tcp 198.51.100.4:7443: i/o timeout")})
	want := `NODE     STATE        ARCH   VERSION      UPTIME    CPU       MEMORY         MESH       APPS  STORAGE  CERT
cloud-1  ok           arm64  v2026.12.01  72h4m10s  3% of 2   412/3891 MiB   2/2 peers  1/1   2 loc    341d
home-1   ok           amd64  v2026.12.01  5h12m3s   12% of 4  1204/7820 MiB  1/2 peers  3/3   -        200d
vps-1    unreachable  -      -            -         -         -              -          -     -        -
needs attention:
  home-1: reaches 1 of 2 mesh peers
  vps-1: unreachable (dial tcp 198.51.100.4:7443: i/o timeout)
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestStatusOfTheQuickstart(t *testing.T) {
	s := status()
	s.Version, s.Uptime, s.CertificateExpires = "dev", 1530*60*60+17*60+52, after(365).Add(-time.Minute)
	s.CPU, s.Memory = message.CPU{Count: 32, Busy: 0.4}, message.Memory{Used: 52864, Total: 192933}
	s.Mesh, s.Apps, s.State = message.Reached{}, message.Apps{}, message.State{Kind: message.StateFolder}
	want := `NODE     STATE  ARCH   VERSION  UPTIME       CPU       MEMORY            MESH       APPS  STORAGE  CERT
my-node  ok     amd64  dev      1530h17m52s  0% of 32  52864/192933 MiB  0/0 peers  0/0   -        364d
needs attention:
  my-node: state is in RAM, lost at reboot
`
	if got := shown(t, Answer{Name: "my-node", Status: s}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAllHealthy(t *testing.T) {
	got := shown(t, Answer{Name: "home-1", Status: status()})
	if lines := strings.Split(got, "\n"); len(lines) != 4 || lines[2] != "all nodes healthy" {
		t.Errorf("%s", got)
	}
	if got := shown(t); got != "NODE  STATE  ARCH  VERSION  UPTIME  CPU  MEMORY  MESH  APPS  STORAGE  CERT\nall nodes healthy\n" {
		t.Errorf("no nodes: %q", got)
	}
}

func TestProblems(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*message.Status)
		want   []string
	}{
		"none":          {func(*message.Status) {}, nil},
		"no peers":      {func(s *message.Status) { s.Mesh = message.Reached{} }, nil},
		"a week":        {func(s *message.Status) { s.CertificateExpires = after(7) }, nil},
		"almost a week": {func(s *message.Status) { s.CertificateExpires = after(7).Add(-time.Second) }, []string{"certificate expires in 6 days"}},
		"hours":         {func(s *message.Status) { s.CertificateExpires = after(0.5) }, []string{"certificate expires in 0 days"}},
		"expired":       {func(s *message.Status) { s.CertificateExpires = now }, []string{"certificate has expired"}},
		"RAM":           {func(s *message.Status) { s.State.Kind = message.StateRAM }, []string{"state is in RAM, lost at reboot"}},
		"everything": {func(s *message.Status) {
			s.State.Kind, s.Mesh, s.CertificateExpires = message.StateRAM, message.Reached{Reached: 0, Peers: 5}, after(3.2)
		}, []string{"reaches 0 of 5 mesh peers", "certificate expires in 3 days", "state is in RAM, lost at reboot"}},
	} {
		s := status()
		c.change(&s)
		if got := (Answer{Name: "home-1", Status: s}).Problems(now); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	got := Answer{Name: "a", Err: errors.New("first\nsecond \x1b[31m")}.Problems(now)
	if want := []string{`unreachable (first; second \x1b[31m)`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestCells(t *testing.T) {
	s := status()
	s.CPU.Busy, s.CertificateExpires = 1e300, after(-1)
	if cells := (Answer{Status: s}).cells(now); cells[5] != "100% of 4" || cells[10] != "expired" {
		t.Errorf("%q", cells)
	}
	s.CPU.Busy, s.CertificateExpires = -3, after(0.9)
	if cells := (Answer{Status: s}).cells(now); cells[5] != "0% of 4" || cells[10] != "0d" {
		t.Errorf("%q", cells)
	}
}

func TestStatusJSON(t *testing.T) {
	s := status()
	s.State.Kind = message.StateRAM
	var b strings.Builder
	err := WriteStatusJSON(&b, []Answer{
		{Name: "home-1", Status: status()}, {Name: "ram-1", Status: s}, {Name: "vps-1", Err: errors.New("i/o timeout")},
	}, now)
	want := `{"node":"home-1","state":"ok","status":` + compact(t, status()) + `,"needs_attention":[]}
{"node":"ram-1","state":"ok","status":` + compact(t, s) + `,"needs_attention":["state is in RAM, lost at reboot"]}
{"node":"vps-1","state":"unreachable","error":"i/o timeout","needs_attention":["unreachable (i/o timeout)"]}
`
	if err != nil || b.String() != want {
		t.Errorf("got\n%s\nwant\n%s\n%v", b.String(), want, err)
	}
}

// FuzzStatus has nodes say anything: the table has a line for each, and no control
// character reaches the terminal.
func FuzzStatus(f *testing.F) {
	f.Add([]byte(compact(f, status())), "a", "")
	f.Add([]byte(`{"arch":"\u001b[31m\n","version":"a\tb","cpu":{"busy_percent":-1e300},"storage_locations":-1}`), "\n", "\x00\r\n")
	f.Fuzz(func(t *testing.T, b []byte, name, failure string) {
		a := Answer{Name: name}
		if json.Unmarshal(b, &a.Status) != nil || failure != "" {
			a.Err = errors.New(failure)
		}
		text := shown(t, a)
		harmless(t, text)
		if got, want := strings.Count(text, "\n"), 3+max(len(a.Problems(now)), 0); got != want {
			t.Errorf("%d lines, want %d: %q", got, want, text)
		}
	})
}
