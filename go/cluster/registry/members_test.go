package registry

import (
	"reflect"
	"testing"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/meshkey"
)

func TestMembers(t *testing.T) {
	r := example(t)
	if l := r.Members(); len(l.Nodes) != 0 {
		t.Errorf("nodes that may never come: %+v", l)
	}
	for i := range r.Nodes {
		r.Nodes[i].Confirmed.Set(true, at(20))
	}
	web, home := r.Nodes[0], r.Nodes[1]
	want := membership.List{Nodes: []membership.Node{
		{Name: "web-1", ID: web.ID},
		{
			Name: "home-1", ID: home.ID, MeshKey: meshkey.Public{9},
			Endpoint: parse(t, "home.example.net:51820"), API: parse(t, "[2001:db8::1]:7443"),
		},
	}}
	l := r.Members()
	if !reflect.DeepEqual(l, want) {
		t.Errorf("%+v", l)
	}
	if l := New(cluster()).Members(); l.Validate() != nil || len(l.Nodes) != 0 {
		t.Errorf("of no nodes: %+v", l)
	}
}

// TestMembersOfOneName: the list of two nodes that two admins have enrolled under one
// name can be published.
func TestMembersOfOneName(t *testing.T) {
	a, b := New(cluster()), New(cluster())
	for fill, r := range map[byte]*Registry{1: a, 2: b} {
		n := newNode(t, "home-1", fill)
		n.Confirmed.Set(true, at(20))
		if err := r.Add(n); err != nil {
			t.Fatal(err)
		}
	}
	merged, err := Merge(a, b)
	if err != nil {
		t.Fatal(err)
	}
	l := merged.Members()
	body, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if read, err := membership.Decode(body); err != nil || !reflect.DeepEqual(read, l) || len(read.ByName("home-1")) != 2 {
		t.Errorf("%+v, %v", read, err)
	}
}

func TestPeerAPI(t *testing.T) {
	for _, test := range []struct{ address, endpoint, peerAPI, want string }{
		{},
		{"192.0.2.10:9000", "", "", "192.0.2.10:9000"},
		{"192.0.2.10:9000", "198.51.100.7:1", "", "192.0.2.10:9000"},
		{"192.0.2.10:9000", "198.51.100.7:1", "192.0.2.11:5", "192.0.2.11:5"},
		{"home.example.net:7443", "", "", "home.example.net:7443"},
		{"localhost:9000", "", "", ""},
		{"localhost:9000", "198.51.100.7:1", "", "198.51.100.7:7443"},
		{"127.0.0.1:9000", "home.example.net:1", "", "home.example.net:7443"},
		{"[::1]:9000", "[2001:db8::1]:1", "", "[2001:db8::1]:7443"},
		{"localhost:9000", "", "127.0.0.1:5", "127.0.0.1:5"},
		{"", "198.51.100.7:1", "", "198.51.100.7:7443"},
		{"", "", "192.0.2.11:5", "192.0.2.11:5"},
	} {
		n := newNode(t, "home-1", 1)
		if test.address != "" {
			n.Address.Set(parse(t, test.address), at(1))
		}
		if test.endpoint != "" {
			n.Endpoint.Set(parse(t, test.endpoint), at(2))
		}
		// Set to something, and then perhaps cleared.
		n.PeerAPI.Set(parse(t, "192.0.2.99:99"), at(3))
		if test.peerAPI != "" {
			n.PeerAPI.Set(parse(t, test.peerAPI), at(4))
		} else {
			n.PeerAPI = Setting[address.Address]{Changed: at(4)}
		}
		if got := n.peerAPI().String(); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
	}
}
