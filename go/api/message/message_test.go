package message

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

// TestNames states what is sent. pcctl and nodes of other versions read it: members
// are added, and none is ever changed.
func TestNames(t *testing.T) {
	expires := time.Date(2027, 10, 29, 1, 14, 0, 0, time.UTC)
	trip, age := 18400*time.Microsecond, int64(12)
	state := State{Kind: StateEncrypted, Size: 100, Free: 50, Filling: &Filling{Filled: 60, Total: 100}, Protection: "p"}
	id, cluster := pki.NodeID{1}, keys.ClusterID{2}
	for want, v := range map[string]any{
		`{"name":"a","id":"0100000000000000","cluster":"02000000000000000000000000000000","arch":"amd64","kernel":"6.1","boot":"b","lockdown":"none",` +
			`"state":{"kind":"ram"},"version":"dev","uptime_seconds":3,"certificate_expires":"2027-10-29T01:14:00Z","cluster_ca":"c"}`: Info{
			Name: "a", ID: id, Cluster: cluster, Architecture: "amd64", Kernel: "6.1", Boot: "b", Lockdown: "none",
			State: State{Kind: StateRAM}, Version: "dev", Uptime: 3, CertificateExpires: expires, Authority: "c",
		},
		`{"kind":"encrypted","size_bytes":100,"free_bytes":50,"filling":{"filled_bytes":60,"total_bytes":100},"protection":"p"}`: state,
		`{"address":"fdd5::1","port":51820,"peers":[{"name":"b","address":"fdd5::2","endpoint":"203.0.113.7:51820","relay":"c","handshake_seconds":12,` +
			`"round_trip_ns":18400000},{"name":"d","address":"fdd5::3","error":"e"}]}`: Mesh{
			Address: netip.MustParseAddr("fdd5::1"), Port: 51820,
			Peers: []Peer{
				{Name: "b", Address: netip.MustParseAddr("fdd5::2"), Endpoint: "203.0.113.7:51820", Relay: "c", Handshake: &age, RoundTrip: &trip},
				{Name: "d", Address: netip.MustParseAddr("fdd5::3"), Error: "e"},
			},
		},
		`{"name":"a","id":"0100000000000000","arch":"amd64","version":"dev","uptime_seconds":3,"state":{"kind":"folder"},` +
			`"certificate_expires":"2027-10-29T01:14:00Z","cpu":{"count":4,"busy_percent":12.5},"memory":{"used_mib":5,"total_mib":6},` +
			`"mesh":{"reached":1,"peers":2},"apps":{"running":3,"deployed":4},"storage_locations":7}`: Status{
			Name: "a", ID: id, Architecture: "amd64", Version: "dev", Uptime: 3, State: State{Kind: StateFolder}, CertificateExpires: expires,
			CPU: CPU{4, 12.5}, Memory: Memory{5, 6}, Mesh: Reached{1, 2}, Apps: Apps{3, 4}, Locations: 7,
		},
		`{"target":"home.example:443"}`: Ping{Target: "home.example:443"},
		`{"lookup_ns":5,"lookup_error":"e","addresses":[{"address":"192.0.2.1","tries":[{"duration_ns":6},{"duration_ns":7,"error":"f"}]}],"untried":8}`: Pinged{
			Lookup: 5, LookupError: "e", Untried: 8,
			Addresses: []PingedAddress{{Address: netip.MustParseAddr("192.0.2.1"), Tries: []PingTry{{Duration: 6}, {Duration: 7, Error: "f"}}}},
		},
	} {
		got, err := json.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%T is\n%s\nwant\n%s\n%v", v, got, want, err)
		}
		again := reflect.New(reflect.TypeOf(v))
		if err := json.Unmarshal([]byte(want), again.Interface()); err != nil || !reflect.DeepEqual(again.Elem().Interface(), v) {
			t.Errorf("%T doesn't read back: %+v, %v", v, again.Elem(), err)
		}
	}
}
