package nodes

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"testing"

	"pgregory.net/rapid"

	"powercloud.unidatum.com/go/admin/command"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/cluster/registry"
	"powercloud.unidatum.com/go/cluster/registry/registrytest"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

func newCA(t testing.TB) *pki.CA {
	t.Helper()
	first := keystest.First(t)
	ca, err := pki.NewCA(first.Root(t), first.ID)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// newAdmin returns an unlocked cluster whose registry is in a store.
func newAdmin(t testing.TB, ca *pki.CA, store registry.Objects) *cluster {
	t.Helper()
	return &cluster{
		group: &group{Session: &session.Session{Env: command.Env{Stderr: io.Discard}}},
		ca:    ca, kept: store, registry: registry.New(keystest.First(t).ID),
	}
}

// keyOf returns the key that is made of a byte.
func keyOf(fill byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{fill}, ed25519.SeedSize))
}

// entry returns a member whose key is made of a byte. Nobody knows where it is.
func entry(t testing.TB, fill byte) registry.Node {
	t.Helper()
	key := keyOf(fill).Public().(ed25519.PublicKey)
	n, err := registry.NewNode(fmt.Sprintf("node-%d", fill), key, volumeid.ID{fill}, now)
	if err != nil {
		t.Fatal(err)
	}
	n.Confirmed.Set(true, now)
	return n
}

// put returns a change that enters a node, or says where peers reach it.
func put(n registry.Node, second byte) func(*registry.Registry) error {
	return func(r *registry.Registry) error {
		if r.Revoked.HasNode(n.ID) {
			return nil
		}
		if _, err := r.Find(n.ID.String()); err != nil {
			if err := r.Add(n); err != nil {
				return err
			}
		}
		there, err := r.Find(n.ID.String())
		if err != nil {
			return err
		}
		at, err := address.Parse(fmt.Sprintf("192.0.2.%d", second), address.MeshPort)
		there.Endpoint.Set(at, after(float64(second)))
		return err
	}
}

// script is what several admins do at once, and in what order their calls are.
type script struct{ bytes []byte }

// next returns a number below n.
func (s *script) next(n int) int {
	if len(s.bytes) == 0 {
		return 0
	}
	chosen := int(s.bytes[0]) % n
	s.bytes = s.bytes[1:]
	return chosen
}

// signed are lists that were signed, by their kinds and serials.
type signed map[string][]byte

// add enters a list. There must be no other of its kind and serial.
func (s signed) add(t rapid.TB, d *document.Document) {
	t.Helper()
	name := fmt.Sprintf("%s %d", d.Kind, d.Serial)
	if other, known := s[name]; known && !bytes.Equal(other, d.Body) {
		t.Errorf("there are two lists %s:\n%s\n%s", name, other, d.Body)
	}
	s[name] = d.Body
}

// TestListsNumberedAtOnce: whatever up to three admins change at the same moment, no two
// lists are signed with one serial.
func TestListsNumberedAtOnce(t *testing.T) {
	ca := newCA(t)
	nodes := []registry.Node{entry(t, 1), entry(t, 2), entry(t, 3)}
	rapid.Check(t, func(draw *rapid.T) {
		admins := rapid.IntRange(2, 3).Draw(draw, "admins")
		does := &script{rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(draw, "what they do")}
		order := &script{rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(draw, "order")}
		lists := signed{}
		number := func(c *cluster, k kind, change func(*registry.Registry) error) bool {
			list, err := c.number(context.Background(), k, 0, change)
			if errors.Is(err, registry.ErrContended) {
				return false
			}
			if err != nil {
				draw.Error(err)
				return false
			}
			lists.add(draw, list)
			return true
		}
		var writers []func(registrytest.Store)
		for range admins {
			writers = append(writers, func(store registrytest.Store) {
				c := newAdmin(t, ca, store)
				for range 2 {
					n := nodes[does.next(len(nodes))]
					if does.next(3) == 2 {
						number(c, revocations(), func(r *registry.Registry) error { r.Remove(n.ID); return nil })
						continue
					}
					if !number(c, memberships(), put(n, byte(1+does.next(9)))) || c.registry.Revocations == 0 {
						continue
					}
					list, err := c.numbered(context.Background(), revocations())
					if err == nil {
						lists.add(draw, list)
					} else if !errors.Is(err, registry.ErrContended) {
						draw.Error(err)
					}
				}
			})
		}
		registrytest.Interleave(&registrytest.Objects{}, order.next, writers...)
	})
}

// TestListsSpreadAtOnce: of what two admins hand out at the same moment, the list with the
// highest serial has what both have changed.
func TestListsSpreadAtOnce(t *testing.T) {
	ca := newCA(t)
	rapid.Check(t, func(draw *rapid.T) {
		order := &script{rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(draw, "order")}
		store := &registrytest.Objects{}
		var newest *document.Document
		contended := false
		var writers []func(registrytest.Store)
		for i := range 2 {
			writers = append(writers, func(s registrytest.Store) {
				c := newAdmin(t, ca, s)
				list, err := c.number(context.Background(), memberships(), 0, put(entry(t, byte(i+1)), byte(i+1)))
				if err == nil {
					list, _, err = c.spread(context.Background(), memberships(), list)
				}
				switch {
				case errors.Is(err, registry.ErrContended):
					contended = true
				case err != nil:
					draw.Error(err)
				case newest == nil || list.Serial > newest.Serial:
					newest = list
				}
			})
		}
		registrytest.Interleave(store, order.next, writers...)
		r, err := registry.Load(context.Background(), store, keystest.First(t).ID)
		if err != nil {
			draw.Fatal(err)
		}
		members, err := r.Members().Encode()
		if err != nil || len(r.Nodes) != 2 {
			draw.Errorf("the registry has %+v, %v", r, err)
		}
		if !contended && (newest.Serial != r.Membership || !bytes.Equal(newest.Body, members)) {
			draw.Errorf("the newest list is %d, %s; the registry is at %d, %s", newest.Serial, newest.Body, r.Membership, members)
		}
	})
}
