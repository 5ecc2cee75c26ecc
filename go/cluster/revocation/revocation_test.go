package revocation

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/pki"
)

func moment(second int) time.Time { return time.Date(2026, 1, 1, 12, 0, second, 0, time.UTC) }

func example() List {
	return List{AdminsBefore: moment(0), Nodes: []pki.NodeID{{1}, {2, 3}}}
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
	golden, err := os.ReadFile(filepath.Join("testdata", "revocations-v1.json"))
	if err != nil {
		t.Error(err)
	}
	golden = bytes.TrimSuffix(golden, []byte("\n"))
	if got := encode(t, example()); got != string(golden) {
		t.Fatalf("written %s", got)
	}
	read, err := Decode(golden)
	if err != nil || !reflect.DeepEqual(read, example()) {
		t.Errorf("read as %+v, %v", read, err)
	}
}

func TestEmpty(t *testing.T) {
	if got := encode(t, List{}); got != `{"nodes":[]}` {
		t.Errorf("written %s", got)
	}
	read, err := Decode([]byte(`{"nodes":[]}`))
	if err != nil || !read.Empty() || !(List{}).Empty() {
		t.Errorf("read as %+v, %v", read, err)
	}
	if (List{}).WithNode(pki.NodeID{}).Empty() || (List{}).WithAdmins(moment(0)).Empty() {
		t.Error("a list that revokes something is empty")
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := encode(t, example())
	for title, body := range map[string]string{
		"nothing":        "",
		"no nodes":       `{}`,
		"null":           `{"nodes":null}`,
		"unsorted":       `{"nodes":["0200000000000000","0100000000000000"]}`,
		"twice":          `{"nodes":["0100000000000000","0100000000000000"]}`,
		"short ID":       `{"nodes":["01000000000000"]}`,
		"upper case":     `{"nodes":["0A00000000000000"]}`,
		"number":         `{"nodes":[1]}`,
		"unknown member": strings.Replace(good, "{", `{"serial":1,`, 1),
		"other zone":     strings.Replace(good, "12:00:00Z", "13:00:00+01:00", 1),
		"offset 0":       strings.Replace(good, "12:00:00Z", "12:00:00+00:00", 1),
		"fraction":       strings.Replace(good, "12:00:00Z", "12:00:00.5Z", 1),
		"no moment":      `{"admins_before":"0001-01-01T00:00:00Z","nodes":[]}`,
		"trailing":       good + " ",
	} {
		if read, err := Decode([]byte(body)); err == nil {
			t.Errorf("%s: read as %+v", title, read)
		}
	}
	if _, err := (List{Nodes: []pki.NodeID{{2}, {1}}}).Encode(); err == nil {
		t.Error("an unsorted list was written")
	}
}

func TestCheck(t *testing.T) {
	l := example()
	admin := func(issued time.Time) pki.Identity { return pki.Identity{Role: pki.RoleAdmin, Issued: issued} }
	node := func(id pki.NodeID) pki.Identity {
		// Issued long after: the ID is revoked, not a certificate.
		return pki.Identity{Role: pki.RoleNode, Node: id, Issued: moment(0).AddDate(9, 0, 0)}
	}
	for title, test := range map[string]struct {
		bearer  pki.Identity
		revoked bool
	}{
		"earlier admin":       {admin(moment(-1)), true},
		"admin of the moment": {admin(moment(0)), false},
		"later admin":         {admin(moment(1)), false},
		"removed node":        {node(pki.NodeID{2, 3}), true},
		"other node":          {node(pki.NodeID{2}), false},
		"node of old":         {pki.Identity{Role: pki.RoleNode, Node: pki.NodeID{9}, Issued: moment(-9)}, false},
	} {
		if err := l.Check(test.bearer); errors.Is(err, ErrRevoked) != test.revoked || (err != nil) != test.revoked {
			t.Errorf("%s: %v", title, err)
		}
	}
	if err := (List{}).Check(admin(time.Time{})); err != nil {
		t.Errorf("an empty list: %v", err)
	}
}

func TestAdminsAreRevokedToTheSecond(t *testing.T) {
	now := moment(5).Add(time.Nanosecond)
	l := List{}.WithAdmins(now)
	if !l.AdminsBefore.Equal(moment(6)) {
		t.Errorf("before %s", l.AdminsBefore)
	}
	if l.Check(pki.Identity{Role: pki.RoleAdmin, Issued: moment(5)}) == nil {
		t.Error("one issued in the same second is good")
	}
	if err := l.Check(pki.Identity{Role: pki.RoleAdmin, Issued: l.IssueTime(now)}); err != nil {
		t.Errorf("the new one: %v", err)
	}
	// A clock that is behind changes nothing back.
	if again := l.WithAdmins(moment(1)); !again.AdminsBefore.Equal(moment(6)) {
		t.Errorf("before %s", again.AdminsBefore)
	}
	if got := l.IssueTime(moment(9)); !got.Equal(moment(9)) {
		t.Errorf("issued at %s", got)
	}
}

func TestMerge(t *testing.T) {
	a := List{AdminsBefore: moment(1)}.WithNode(pki.NodeID{3}).WithNode(pki.NodeID{1})
	b := List{AdminsBefore: moment(2)}.WithNode(pki.NodeID{2}).WithNode(pki.NodeID{3})
	want := List{AdminsBefore: moment(2), Nodes: []pki.NodeID{{1}, {2}, {3}}}
	for _, got := range []List{a.Merge(b), b.Merge(a), a.Merge(b).Merge(a), want.Merge(List{}), List{}.Merge(want)} {
		if !reflect.DeepEqual(got, want) {
			t.Errorf("merged %+v", got)
		}
	}
	if len(a.Nodes) != 2 {
		t.Error("merging changed a list")
	}
}

// TestCovers: a list covers another exactly if merging the other into it changes nothing.
func TestCovers(t *testing.T) {
	lists := []List{{}, {AdminsBefore: moment(1)}, {AdminsBefore: moment(2)}}
	for _, l := range slices.Clone(lists) {
		one := l.WithNode(pki.NodeID{1})
		lists = append(lists, one, l.WithNode(pki.NodeID{2}), one.WithNode(pki.NodeID{2}))
	}
	covered := 0
	for _, a := range lists {
		for _, b := range lists {
			got := a.Covers(b)
			if want := a.Merge(b).Equal(a); got != want {
				t.Errorf("%+v covers %+v: %t", a, b, got)
			}
			if got {
				covered++
			}
		}
	}
	// Of three moments 6 pairs in order, and of the sets of two nodes 9 that have another.
	if covered != 6*9 {
		t.Errorf("%d pairs are covered", covered)
	}
}

// FuzzDecode must refuse, or read what is written the same way.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(encode(f, example())))
	f.Add([]byte(`{"nodes":[]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		l, err := Decode(body)
		if err != nil {
			return
		}
		if again, err := l.Encode(); err != nil || !bytes.Equal(again, body) {
			t.Errorf("%q is written %q, %v", body, again, err)
		}
	})
}
