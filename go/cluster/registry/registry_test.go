package registry

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/pki"
)

// TestGolden holds the format still: the file was written by the first version of
// this package.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "registry-v1.txt"))
	if err != nil {
		t.Error(err)
	}
	if got := encode(t, example(t)); got != string(golden) {
		t.Fatalf("written\n%s", got)
	}
	read, err := Decode(golden)
	if err != nil || !reflect.DeepEqual(read, example(t)) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := encode(t, example(t))
	replace := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("there is no %s in %s", old, good)
		}
		return strings.Replace(good, old, new, 1)
	}
	first := good[strings.Index(good, `"nodes":[{`)+len(`"nodes":[`) : strings.Index(good, `},{"name"`)+1]
	for title, text := range map[string]string{
		"nothing":           "",
		"no magic":          good[len(magic):],
		"version 2":         replace("v1", "v2"),
		"trailing":          good + "\n",
		"no nodes":          good[:strings.Index(good, `,"nodes":[{`)] + "}",
		"null":              good[:strings.Index(good, `"nodes":[{`)] + `"nodes":null}`,
		"name":              replace("home-1", "Home-1"),
		"ID":                replace(`"id":"`, `"id":"0`),
		"another ID":        replace(`"id":"`+example(t).Nodes[0].ID.String(), `"id":"0000000000000000`),
		"key":               replace(`"key":"`, `"key":"AAAA`),
		"cluster":           replace(`"cluster":"c1`, `"cluster":"C1`),
		"volume":            replace(`"volume":"0`, `"volume":"A`),
		"short volume":      replace(`"volume":"0`, `"volume":"`),
		"address":           replace("192.0.2.10:7443", "192.0.2.10"),
		"mesh key":          replace(`{"value":"0900`, `{"value":"09`),
		"measurement":       replace(`"measurement":"07`, `"measurement":"0G`),
		"only measured":     replace(`"sev_snp":true`, `"sev_snp":false`),
		"zone of a setting": replace("09:00:10Z", "10:00:10+01:00"),
		"zone":              replace("09:00:01Z", "10:00:01+01:00"),
		"never enrolled":    replace("2026-10-28T09:00:01Z", "0001-01-01T00:00:00Z"),
		"never changed":     replace("2026-10-28T09:00:10Z", "0001-01-01T00:00:00Z"),
		"twice":             replace(first, first+","+first),
		"removed node":      replace(`"nodes":["`+example(t).Revoked.Nodes[0].String(), `"nodes":["`+example(t).Nodes[0].ID.String()),
		"revoked nothing":   replace(`"nodes":["`+example(t).Revoked.Nodes[0].String()+`"]`, `"nodes":null`),
		"too large":         good + strings.Repeat(" ", MaxSize),
	} {
		if r, err := Decode([]byte(text)); !errors.Is(err, ErrRegistry) {
			t.Errorf("%s: read as %+v, %v", title, r, err)
		}
	}
}

func TestAdd(t *testing.T) {
	r := New(cluster())
	home := newNode(t, "home-1", 1)
	if err := r.Add(home); err != nil {
		t.Fatal(err)
	}
	for title, test := range map[string]struct {
		node Node
		want string
	}{
		"name": {newNode(t, "home-1", 2), `a node named "home-1" is already enrolled`},
		"ID":   {newNode(t, "home-2", 1), `node ` + home.ID.String() + ` is already enrolled, as "home-1"`},
	} {
		if err := r.Add(test.node); err == nil || err.Error() != test.want {
			t.Errorf("%s: %v", title, err)
		}
	}
	r.Remove(home.ID)
	if len(r.Nodes) != 0 || !r.Revoked.HasNode(home.ID) {
		t.Errorf("it stays: %+v", r)
	}
	if err := r.Add(home); err == nil {
		t.Error("a removed node was added again")
	}
	if err := r.Add(newNode(t, "home-1", 2)); err != nil {
		t.Errorf("the name isn't free: %v", err)
	}
}

func TestNewNodeRefuses(t *testing.T) {
	if _, err := NewNode("Home", newNode(t, "a", 1).Key, volumeid.ID{}, at(0)); err == nil {
		t.Error("a wrong name is accepted")
	}
	if _, err := NewNode("home", nil, volumeid.ID{}, at(0)); err == nil {
		t.Error("a wrong key is accepted")
	}
}

func TestFind(t *testing.T) {
	r := New(cluster())
	home, twin, web := newNode(t, "home-1", 1), newNode(t, "home-1", 2), newNode(t, "web-1", 3)
	r.Nodes = append(r.Nodes, home, twin, web)
	if n, err := r.Find("web-1"); err != nil || n.ID != web.ID {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := r.Find("web-2"); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `"web-2"`) {
		t.Error(err)
	}
	if _, err := r.Find("home-1"); err == nil || errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), twin.ID.String()) {
		t.Errorf("two of one name: %v", err)
	}
	n, err := r.Find(twin.ID.String())
	if err != nil || n.ID != twin.ID {
		t.Fatalf("%+v, %v", n, err)
	}
	n.MeshKey.Set(meshkey.Public{1}, at(1))
	if r.Nodes[1].MeshKey.Value != (meshkey.Public{1}) {
		t.Error("what was found isn't in its place")
	}
	names := r.Names()
	if names[0].Name != "home-1" || names[2].Name != "web-1" || &names[0] == &r.Nodes[0] {
		t.Errorf("%+v", names)
	}
}

func TestSet(t *testing.T) {
	var s Setting[meshkey.Public]
	if !s.IsZero() {
		t.Error("it was set")
	}
	s.Set(meshkey.Public{1}, at(5))
	first := s
	if s.Set(meshkey.Public{1}, at(9)); s != first {
		t.Error("the same value changed it")
	}
	// By a clock that is behind.
	if s.Set(meshkey.Public{2}, at(1)); s.Value != (meshkey.Public{2}) || !s.Changed.After(first.Changed) {
		t.Errorf("%+v", s)
	}
	if s.Set(meshkey.Public{}, at(9)); s.IsZero() || !s.Changed.Equal(at(9)) {
		t.Errorf("clearing is no change: %+v", s)
	}
	if s.Set(meshkey.Public{3}, time.Now()); s.Changed.Location() != time.UTC || s.Changed != s.Changed.Round(0) {
		t.Error("the time can't be written as it is")
	}
}

// TestEndpointFollowsTheAddress: what was set by hand doesn't.
func TestEndpointFollowsTheAddress(t *testing.T) {
	n := newNode(t, "home-1", 1)
	for i, step := range []struct {
		address, endpoint string
		changed           bool
	}{
		{"localhost:7443", "", false},
		{"192.0.2.10:9000", "192.0.2.10:51820", true},
		{"192.0.2.10:7443", "192.0.2.10:51820", false},
		{"[2001:db8::1]:7443", "[2001:db8::1]:51820", true},
		{"localhost:7443", "[2001:db8::1]:51820", false},
	} {
		if changed := n.SetAddress(parse(t, step.address), at(i)); changed != step.changed || n.Endpoint.Value.String() != step.endpoint {
			t.Errorf("%s: endpoint %s, changed %v", step.address, n.Endpoint.Value, changed)
		}
		if n.Address.Value.String() != step.address {
			t.Errorf("the address is %s", n.Address.Value)
		}
	}
	n.Endpoint.Set(parse(t, "198.51.100.7:51820"), at(20))
	if n.SetAddress(parse(t, "192.0.2.11:7443"), at(21)) || n.Endpoint.Value.Host() != "198.51.100.7" {
		t.Errorf("the endpoint set by hand is %s", n.Endpoint.Value)
	}
}

func TestEncodeRefuses(t *testing.T) {
	for title, change := range map[string]func(*Registry){
		"unsorted":     func(r *Registry) { r.Nodes[0], r.Nodes[1] = r.Nodes[1], r.Nodes[0] },
		"wrong name":   func(r *Registry) { r.Nodes[0].Name = "" },
		"removed node": func(r *Registry) { r.Revoked = r.Revoked.WithNode(r.Nodes[0].ID) },
		"wrong ID":     func(r *Registry) { r.Nodes[0].ID = pki.NodeID{} },
		"no nodes":     func(r *Registry) { r.Nodes = nil },
	} {
		r := example(t)
		change(r)
		if _, err := r.Encode(); err == nil {
			t.Errorf("%s: it was written", title)
		}
	}
}

// FuzzDecode must refuse, or read what is written the same way.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encode(f, example(f))))
	f.Add([]byte(encode(f, New(cluster()))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Decode(b)
		if err != nil {
			return
		}
		if again, err := r.Encode(); err != nil || !bytes.Equal(again, b) {
			t.Errorf("%q is written %q, %v", b, again, err)
		}
		if merged, err := Merge(r, r); err != nil || encode(t, merged) != string(b) {
			t.Errorf("merged with itself it is %+v, %v", merged, err)
		}
	})
}
