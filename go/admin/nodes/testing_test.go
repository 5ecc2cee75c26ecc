package nodes

import (
	"encoding/json"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

// now is when the tests look at nodes.
var now = time.Date(2026, 10, 29, 1, 14, 30, 0, time.UTC)

// after is a moment in a number of days.
func after(days float64) time.Time { return now.Add(time.Duration(days * float64(day))) }

// info is what the manual's node says of itself.
func info(t testing.TB) message.Info {
	t.Helper()
	id, err := pki.ParseNodeID("262c2fdc861a9cf2")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := keys.ParseClusterID("66770d7cd1f5522f114c0381e8fe93e1")
	if err != nil {
		t.Fatal(err)
	}
	return message.Info{
		Name: "my-node", ID: id, Cluster: cluster,
		Architecture: "amd64", Kernel: "6.1.0-50-amd64", Boot: "UEFI, Secure Boot off", Lockdown: "none",
		State: message.State{Kind: message.StateFolder}, Version: "dev", Uptime: 1530*60*60 + 17*60 + 52,
		CertificateExpires: after(365).Truncate(time.Minute), Authority: "8471c8d7afafd600", Membership: 1,
	}
}

// status is what a node with nothing to complain of says.
func status() message.Status {
	return message.Status{
		Name: "home-1", Architecture: "amd64", Version: "v2026.12.01", Uptime: 5*60*60 + 12*60 + 3,
		State: message.State{Kind: message.StateEncrypted, Size: 1 << 33, Free: 1 << 32}, CertificateExpires: after(200.5),
		CPU: message.CPU{Count: 4, Busy: 12.4}, Memory: message.Memory{Used: 1204, Total: 7820},
		Mesh: message.Reached{Reached: 2, Peers: 2}, Apps: message.Apps{Running: 3, Deployed: 3},
	}
}

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }

// compact is a document as it is sent.
func compact(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
