package membership

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/meshkey"
	"powercloud.unidatum.com/go/pki"
)

func parse(t testing.TB, s string) address.Address {
	t.Helper()
	a, err := address.Parse(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// example has a node of which everything is known, and two of one name of which
// nothing is.
func example(t testing.TB) List {
	t.Helper()
	return List{Nodes: []Node{
		{Name: "web-1", ID: pki.NodeID{1}},
		{
			Name: "home-1", ID: pki.NodeID{2}, MeshKey: meshkey.Public{9},
			Endpoint: parse(t, "home.example.net:51820"), API: parse(t, "[2001:db8::1]:7443"),
		},
		{Name: "web-1", ID: pki.NodeID{2, 3}},
	}}
}

func encode(t testing.TB, l List) string {
	t.Helper()
	body, err := l.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestGolden holds the format still: the file was written by the first version of
// this package.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "membership-v1.json"))
	if err != nil {
		t.Error(err)
	}
	golden = bytes.TrimSuffix(golden, []byte("\n"))
	if got := encode(t, example(t)); got != string(golden) {
		t.Fatalf("written %s", got)
	}
	read, err := Decode(golden)
	if err != nil || !reflect.DeepEqual(read, example(t)) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestEmpty(t *testing.T) {
	if got := encode(t, List{}); got != `{"nodes":[]}` {
		t.Errorf("written %s", got)
	}
	if read, err := Decode([]byte(`{"nodes":[]}`)); err != nil || len(read.Nodes) != 0 {
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
	first := good[strings.Index(good, `[`)+1 : strings.Index(good, `},`)+1]
	for title, body := range map[string]string{
		"nothing":            "",
		"no nodes":           `{}`,
		"null":               `{"nodes":null}`,
		"unsorted":           replace(`"id":"02`, `"id":"03`),
		"twice":              replace(first, first+","+first),
		"no name":            replace(`"name":"home-1",`, ``),
		"empty name":         replace(`home-1`, ``),
		"upper case":         replace(`home-1`, `Home-1`),
		"an ID for a name":   replace(`home-1`, `0123456789abcdef`),
		"no ID":              replace(`"id":"0100000000000000"`, ``),
		"short ID":           replace(`"id":"01`, `"id":"`),
		"short mesh key":     replace(`"mesh_key":"09`, `"mesh_key":"`),
		"mesh key of zeros":  replace(`"mesh_key":"09`, `"mesh_key":"00`),
		"null mesh key":      replace(`,"endpoint"`, `,"mesh_key":null,"endpoint"`),
		"no endpoint":        replace(`home.example.net:51820`, ``),
		"no port":            replace(`:51820`, ``),
		"another spelling":   replace(`home.example.net:51820`, `Home.example.net:51820`),
		"another order":      replace(`"name":"home-1","id":"0200000000000000"`, `"id":"0200000000000000","name":"home-1"`),
		"unknown member":     replace(`{"name"`, `{"key":"","name"`),
		"unknown at the top": replace(`{"nodes"`, `{"serial":1,"nodes"`),
		"trailing":           good + "\n",
		"white space":        replace(`,"id"`, `, "id"`),
	} {
		if read, err := Decode([]byte(body)); err == nil {
			t.Errorf("%s: read as %+v", title, read)
		}
	}
	for title, l := range map[string]List{
		"unsorted":     {Nodes: []Node{{Name: "a", ID: pki.NodeID{2}}, {Name: "b", ID: pki.NodeID{1}}}},
		"twice":        {Nodes: []Node{{Name: "a", ID: pki.NodeID{2}}, {Name: "b", ID: pki.NodeID{2}}}},
		"a wrong name": {Nodes: []Node{{Name: "a b"}}},
	} {
		if _, err := l.Encode(); err == nil {
			t.Errorf("%s: it was written", title)
		}
	}
}

func TestFind(t *testing.T) {
	l := example(t)
	for _, want := range l.Nodes {
		if n, found := l.Find(want.ID); !found || n != want {
			t.Errorf("%s: %+v, %v", want.ID, n, found)
		}
	}
	for _, id := range []pki.NodeID{{}, {1, 1}, {9}} {
		if n, found := l.Find(id); found || n != (Node{}) {
			t.Errorf("%s: %+v, %v", id, n, found)
		}
	}
	if _, found := (List{}).Find(pki.NodeID{1}); found {
		t.Error("found in an empty list")
	}
	if n := l.ByName("home-1"); len(n) != 1 || n[0] != l.Nodes[1] {
		t.Errorf("%+v", n)
	}
	if n := l.ByName("web-1"); len(n) != 2 || n[0] != l.Nodes[0] || n[1] != l.Nodes[2] {
		t.Errorf("%+v", n)
	}
	if n := l.ByName("web-2"); len(n) != 0 {
		t.Errorf("%+v", n)
	}
}

// TestSize: a join bundle has room for the list of over a hundred nodes, and a
// document for that of thousands.
func TestSize(t *testing.T) {
	of := func(count int) int {
		var l List
		for i := range count {
			l.Nodes = append(l.Nodes, Node{
				Name: fmt.Sprintf("node-%d", i), ID: pki.NodeID{byte(i >> 16), byte(i >> 8), byte(i)}, MeshKey: meshkey.Public{1},
				Endpoint: parse(t, fmt.Sprintf("203.0.%d.%d:51820", i>>8&255, i&255)), API: parse(t, fmt.Sprintf("203.0.%d.%d:7443", i>>8&255, i&255)),
			})
		}
		return len(encode(t, l))
	}
	if size := of(120); size > 24000 {
		t.Errorf("the list of 120 nodes has %d bytes", size)
	}
	if size := of(4000); size > 1<<20 {
		t.Errorf("the list of 4000 nodes has %d bytes", size)
	}
}

// FuzzDecode must refuse, or read what is written the same way.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encode(f, example(f))))
	f.Add([]byte(`{"nodes":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := Decode(body)
		if err != nil {
			return
		}
		if again, err := l.Encode(); err != nil || !bytes.Equal(again, body) {
			t.Errorf("%q is written %q, %v", body, again, err)
		}
		for _, n := range l.Nodes {
			if found, ok := l.Find(n.ID); !ok || found != n {
				t.Errorf("%s isn't found in its list", n.ID)
			}
		}
	})
}
