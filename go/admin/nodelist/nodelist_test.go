package nodelist

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/admin/configuration"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/keys"
	"powercloud.unidatum.com/go/pki"
)

func node(t testing.TB, cluster byte, name string, id byte, at string) Node {
	t.Helper()
	a, err := address.Parse(at, address.APIPort)
	if err != nil {
		t.Fatal(err)
	}
	return Node{Cluster: keys.ClusterID{cluster}, Name: name, ID: pki.NodeID{id}, Address: a}
}

func example(t testing.TB) *List {
	var l List
	l.Put(node(t, 2, "home-1", 1, "192.0.2.9"))
	l.Put(node(t, 1, "home-1", 1, "192.0.2.10"))
	l.Put(node(t, 1, "cloud-1", 2, "cloud.example.net:7000"))
	return &l
}

// TestGolden holds the format still: the file was written by the first version of
// this package.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile(filepath.Join("testdata", "nodes-v1.json"))
	if err != nil {
		t.Error(err)
	}
	content, err := example(t).encode()
	if err != nil || string(content) != string(golden) {
		t.Fatalf("written %s, %v", content, err)
	}
	if read, err := decode(golden); err != nil || !reflect.DeepEqual(read, example(t)) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestPut(t *testing.T) {
	l := example(t)
	cluster := keys.ClusterID{1}
	if names := l.Of(cluster); len(names) != 2 || names[0].Name != "cloud-1" || names[1].Name != "home-1" {
		t.Errorf("%+v", names)
	}
	l.Put(node(t, 1, "home-1", 1, "192.0.2.11"))
	if n, err := l.Find(cluster, "home-1"); err != nil || n.Address.Host() != "192.0.2.11" || len(l.Nodes) != 3 {
		t.Errorf("moved: %+v, %v", n, err)
	}
	l.Put(node(t, 1, "home-2", 1, "192.0.2.11"))
	if _, err := l.Find(cluster, "home-1"); err == nil || err.Error() != `unknown node "home-1" (see 'pcctl node ls')` {
		t.Errorf("of another name: %v", err)
	}
	l.Put(node(t, 1, "home-2", 5, "192.0.2.12"))
	if n, err := l.Find(cluster, "home-2"); err != nil || n.ID != (pki.NodeID{5}) || len(l.Nodes) != 3 {
		t.Errorf("enrolled again: %+v, %v", n, err)
	}
	l.Remove(cluster, pki.NodeID{5})
	l.Remove(cluster, pki.NodeID{9})
	if _, err := l.Find(keys.ClusterID{2}, "home-1"); err != nil || len(l.Nodes) != 2 {
		t.Errorf("the other cluster's: %v, %+v", err, l)
	}
}

func TestUpdate(t *testing.T) {
	dir := configuration.Directory(filepath.Join(t.TempDir(), "config"))
	if l, err := Load(dir); err != nil || len(l.Nodes) != 0 {
		t.Errorf("%+v, %v", l, err)
	}
	// As many at once as there may be: none loses another's change.
	var group sync.WaitGroup
	for i := range 8 {
		added := node(t, 1, fmt.Sprintf("node-%d", i), byte(i), "192.0.2.10")
		group.Go(func() {
			if err := Update(dir, func(l *List) error { l.Put(added); return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if l, err := Load(dir); err != nil || len(l.Nodes) != 8 {
		t.Errorf("%+v, %v", l, err)
	}
	broken := errors.New("broken")
	if err := Update(dir, func(l *List) error { l.Nodes = nil; return broken }); err != broken {
		t.Error(err)
	}
	if err := Update(dir, func(l *List) error { l.Nodes[0].Name = ""; return nil }); err == nil {
		t.Error("a list with a wrong name was written")
	}
	if l, err := Load(dir); err != nil || len(l.Nodes) != 8 {
		t.Errorf("%+v, %v", l, err)
	}
	if err := dir.Write(file, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := Update(dir, func(*List) error { return nil }); err == nil || !strings.Contains(err.Error(), "nodes.json") {
		t.Errorf("what can't be read: %v", err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	content, err := example(t).encode()
	if err != nil {
		t.Fatal(err)
	}
	good := string(content)
	first := good[strings.Index(good, "    {") : strings.Index(good, "},")+2]
	for title, text := range map[string]string{
		"nothing":         "",
		"null":            "null",
		"no list":         "{}",
		"null list":       `{"nodes":null}`,
		"trailing":        good + "{}",
		"unknown member":  strings.Replace(good, `"name"`, `"port":1,"name"`, 1),
		"repeated member": strings.Replace(good, `"name"`, `"name":"x","name"`, 1),
		"wrong name":      strings.Replace(good, "cloud-1", "Cloud", 1),
		"wrong address":   strings.Replace(good, "192.0.2.10:7443", "192.0.2.10", 1),
		"empty address":   strings.Replace(good, "192.0.2.10:7443", "", 1),
		"twice":           strings.Replace(good, first, first+"\n"+first, 1),
		"other order":     strings.Replace(good, "cloud-1", "zloud-1", 1),
		"same ID":         strings.Replace(good, "0200000000000000\",\n      \"a", "0100000000000000\",\n      \"a", 1),
	} {
		if text == good {
			t.Errorf("%s: nothing was changed", title)
		}
		if l, err := decode([]byte(text)); err == nil {
			t.Errorf("%s: read as %+v", title, l)
		}
	}
	if _, err := decode(bytes.ReplaceAll(content, []byte("  "), []byte("\t"))); err != nil {
		t.Errorf("with other white space: %v", err)
	}
}

// FuzzDecode must refuse, or read what is written in some form of it.
func FuzzDecode(f *testing.F) {
	content, err := example(f).encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(content)
	f.Add([]byte(`{"nodes":[]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		l, err := decode(content)
		if err != nil {
			return
		}
		written, err := l.encode()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := decode(written); err != nil || !reflect.DeepEqual(again, l) {
			t.Errorf("%q is written %q, and read as %+v, %v", content, written, again, err)
		}
	})
}
