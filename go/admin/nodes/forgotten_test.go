package nodes

import (
	"bytes"
	"errors"
	"testing"

	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/registry/registrytest"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// TestRevokedMeanwhile: between the numbering of a list and its handing out, another admin
// removes a node. Nodes know of it before this admin does. It is forgotten only if the
// storage has it no more.
func TestRevokedMeanwhile(t *testing.T) {
	ca := newCA(t)
	for title, forgets := range map[string]bool{"by another admin": false, "and forgotten": true} {
		t.Run(title, func(t *testing.T) {
			home, goes := startMember(t, ca, 1, nil), entry(t, 2)
			store := &registrytest.Objects{}
			one, warnings := newCaller(t, ca, store)
			other, _ := newCaller(t, ca, store)
			list, err := one.number(t.Context(), memberships(), 0, func(r *registry.Registry) error {
				return errors.Join(put(home.Node, 1)(r), put(goes, 2)(r))
			})
			if err != nil {
				t.Fatal(err)
			}
			before := store.Snapshot()
			revoked, err := other.number(t.Context(), revocations(), 0, func(r *registry.Registry) error { r.Remove(goes.ID); return nil })
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := other.spread(t.Context(), revocations(), revoked); err != nil || home.list(document.Revocations) == nil {
				t.Fatalf("home-1 wasn't told: %v", err)
			}
			if forgets {
				one.kept = before
			}
			list, outcomes, err := one.spread(t.Context(), memberships(), list)
			if err != nil || len(outcomes) != 1 || outcomes[0].err != nil {
				t.Fatalf("%+v, %v", outcomes, err)
			}
			want := ""
			if forgets {
				want = "warning: node node-1 knows of revocations that the storage has forgotten; they are recorded again\n"
			}
			if got := warnings.String(); got != want {
				t.Errorf("the admin is warned of %q, want %q", got, want)
			}
			r, err := registry.Load(t.Context(), one.kept, one.registry.Cluster)
			if err != nil {
				t.Fatal(err)
			}
			members, err := r.Members().Encode()
			if err != nil || !r.Revoked.HasNode(goes.ID) || r.Revocations != revoked.Serial {
				t.Errorf("the registry has %+v, %v", r, err)
			}
			if got := home.list(document.Membership); got == nil || got.Serial != list.Serial || !bytes.Equal(got.Body, members) {
				t.Errorf("the node has %+v, the members are %s", got, members)
			}
		})
	}
}

// TestForgotten states what of that which nodes have revoked is forgotten.
func TestForgotten(t *testing.T) {
	ca := newCA(t)
	c, warnings := newCaller(t, ca, &registrytest.Objects{})
	one, two := pki.NodeID{1}, pki.NodeID{2}
	c.registry.Revoked = c.registry.Revoked.WithNode(one)
	said := func(fill byte, err error) outcome { return outcome{node: entry(t, fill), err: err} }
	known := said(1, &forgottenError{revocation.List{}.WithNode(one)})
	more := said(2, &forgottenError{revocation.List{}.WithNode(one).WithNode(two)})
	for title, test := range map[string]struct {
		outcomes []outcome
		want     []pki.NodeID
		known    bool
		warnings string
	}{
		"nothing":         {[]outcome{said(1, nil), said(2, errNoAddress)}, nil, true, ""},
		"known meanwhile": {[]outcome{known}, nil, false, ""},
		"some of it":      {[]outcome{known, more}, []pki.NodeID{one, two}, false, "warning: node node-2 knows of revocations that the storage has forgotten; they are recorded again\n"},
	} {
		warnings.Reset()
		revoked, all := c.forgotten(test.outcomes)
		if want := (revocation.List{Nodes: test.want}); !revoked.Equal(want) || all != test.known || warnings.String() != test.warnings {
			t.Errorf("%s: %+v, %t, %q", title, revoked, all, warnings.String())
		}
	}
}
