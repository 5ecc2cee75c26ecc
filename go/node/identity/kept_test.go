package identity

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/pki"
	"powercloud.unidatum.com/go/pki/document"
)

// watch returns a function that reports whether another identity is current since the
// last call.
func watch(k *Kept) func() bool {
	_, changed := k.Current()
	return func() bool {
		select {
		case <-changed:
			_, changed = k.Current()
			return true
		default:
			return false
		}
	}
}

func TestReplaceLists(t *testing.T) {
	ca := first(t)
	other := newCA(t, keystest.Second(t))
	p := parts(t, ca)
	id := p.Key.ID()
	folder := t.TempDir()
	kept := install(t, folder, build(t, p))
	before, _ := kept.Current()
	changed := watch(kept)
	for _, step := range []struct {
		title   string
		replace func([]byte) (bool, error)
		list    []byte
		changed bool
		want    error
	}{
		{"the same", kept.ReplaceMembership, p.Membership, false, nil},
		{"newer", kept.ReplaceMembership, members(t, ca, 7, "home-7", id), true, nil},
		{"again", kept.ReplaceMembership, members(t, ca, 7, "home-7", id), false, nil},
		{"older", kept.ReplaceMembership, p.Membership, false, document.ErrOlder},
		{"another cluster's", kept.ReplaceMembership, members(t, other, 9, "home-9", id), false, document.ErrDocument},
		{"of another kind", kept.ReplaceMembership, revoked(t, ca, 9, revocation.List{}), false, document.ErrDocument},
		{"nothing", kept.ReplaceMembership, nil, false, document.ErrDocument},
		{"the same", kept.ReplaceRevocations, p.Revocations, false, nil},
		{"newer", kept.ReplaceRevocations, revoked(t, ca, 8, revokedBefore().WithNode(id)), true, nil},
		{"older", kept.ReplaceRevocations, revoked(t, ca, 7, revocation.List{}), false, document.ErrOlder},
		{"of another kind", kept.ReplaceRevocations, members(t, ca, 9, "home-9", id), false, document.ErrDocument},
		{"newer", kept.ReplaceMembership, members(t, ca, 8, "other", pki.NodeID{1}), true, nil},
	} {
		got, err := step.replace(step.list)
		if got != step.changed || !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
			t.Errorf("%s: %v, %v", step.title, got, err)
		}
		if changed() != step.changed {
			t.Errorf("%s: those who wait for another one were told: %v", step.title, !step.changed)
		}
		now, _ := kept.Current()
		if !same(t, load(t, folder), now) {
			t.Errorf("%s: what is kept is something else", step.title)
		}
	}
	// A signed list that can't be read.
	if _, err := kept.ReplaceRevocations(sign(t, ca, document.Revocations, 99, []byte(`{"nodes":[],"more":1}`), nil)); err == nil || changed() {
		t.Errorf("a list of another form: %v", err)
	}
	now, _ := kept.Current()
	if now.Name() != "home-1" || now.Membership.Serial != 8 || now.Revocations.Serial != 8 {
		t.Errorf("%q, %+v, %+v", now.Name(), now.Membership, now.Revocations)
	}
	if err := now.Check(issued()); !errors.Is(err, revocation.ErrRevoked) {
		t.Errorf("after it was revoked: %v", err)
	}
	if before.Name() != "home-1" || before.Membership.Serial != 5 {
		t.Error("an identity has changed")
	}
}

// TestFirstLists: a node that was just enrolled has none.
func TestFirstLists(t *testing.T) {
	ca, folder := first(t), t.TempDir()
	p := parts(t, ca)
	membership, revocations := p.Membership, p.Revocations
	p.Membership, p.Revocations = nil, nil
	kept := install(t, folder, build(t, p))
	for _, err := range []error{
		func() error { _, err := kept.ReplaceRevocations(revocations); return err }(),
		func() error { _, err := kept.ReplaceMembership(membership); return err }(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if i := load(t, folder); i.Name() != "home-1" || i.Check(issued()) != nil || i.Revoked.Empty() {
		t.Errorf("%+v", i.Members)
	}
}

func TestReplaceCertificate(t *testing.T) {
	ca := first(t)
	p := parts(t, ca)
	folder := t.TempDir()
	kept := install(t, folder, build(t, p))
	changed := watch(kept)
	at := func(days int) time.Time { return issued().AddDate(0, 0, days) }
	of := func(days int) *x509.Certificate { return certificate(t, ca, p.Key, at(days)) }
	for _, step := range []struct {
		title       string
		certificate *x509.Certificate
		now         time.Time
		changed     bool
		want        error
	}{
		{"the same", of(0), at(0), false, nil},
		{"the same when it has expired", of(0), at(999), false, nil},
		{"renewed", of(300), at(301), true, nil},
		{"renewed by another clock", of(301), at(301).Add(-pki.Allowance / 2), true, nil},
		{"older", of(300), at(301), false, document.ErrOlder},
		{"expired", of(400), at(999), false, pki.ErrExpired},
		{"of the future", of(400), at(350), false, pki.ErrNotYetValid},
		{"another authority's", certificate(t, newCA(t, keystest.Second(t)), p.Key, at(400)), at(400), false, pki.ErrCertificate},
		{"renewed after it has expired", of(900), at(900), true, nil},
		// The one before was issued by a clock that was years ahead.
		{"older, and the newer isn't valid", of(320), at(321), true, nil},
	} {
		got, err := kept.ReplaceCertificate(step.certificate, step.now)
		if got != step.changed || !errors.Is(err, step.want) || (err == nil) != (step.want == nil) {
			t.Errorf("%s: %v, %v", step.title, got, err)
		}
		now, _ := kept.Current()
		if changed() != step.changed || step.changed != (now.Certificate == step.certificate) || !same(t, load(t, folder), now) {
			t.Errorf("%s: there is another one: %v", step.title, !step.changed)
		}
	}
	if _, err := kept.ReplaceCertificate(certificate(t, ca, newKeyOf(t, 9), at(400)), at(400)); err == nil || changed() {
		t.Errorf("another node's: %v", err)
	}
	admin, err := ca.IssueAdmin(p.Key.public, at(320), bytes.NewReader(make([]byte, 16)))
	if err != nil {
		t.Fatal(err)
	}
	for title, other := range map[string]*x509.Certificate{"an admin's": admin, "the authority's": ca.Authority().Certificate()} {
		if _, err := kept.ReplaceCertificate(other, at(321)); !errors.Is(err, pki.ErrCertificate) || changed() {
			t.Errorf("%s, for the node's key: %v", title, err)
		}
	}
	if i := load(t, folder); i.Self.Issued != at(320) || i.TLS().Leaf != i.Certificate {
		t.Errorf("%+v", i.Self)
	}
	// A node that was removed stays what it is.
	if _, err := kept.ReplaceRevocations(revoked(t, ca, 7, revokedBefore().WithNode(p.Key.ID()))); err != nil || !changed() {
		t.Fatal(err)
	}
	if got, err := kept.ReplaceCertificate(of(330), at(330)); got || !errors.Is(err, revocation.ErrRevoked) || changed() {
		t.Errorf("of a node that was removed: %v, %v", got, err)
	}
}

// TestRevokesLess: who was revoked stays that, whatever an admin signs later.
func TestRevokesLess(t *testing.T) {
	ca, folder := first(t), t.TempDir()
	kept := install(t, folder, build(t, parts(t, ca)))
	removed := pki.NodeID{9}
	for serial, step := range []struct {
		list revocation.List
		less bool
	}{
		{revokedBefore().WithNode(removed), false},
		{revokedBefore().WithNode(removed).WithAdmins(issued().Add(50 * time.Second)), false},
		{revocation.List{}, true},
		{revokedBefore(), true},
		{revocation.List{}.WithNode(removed).WithAdmins(issued().Add(50 * time.Second)), true},
		{revokedBefore().WithNode(removed), true},
		{revokedBefore().WithNode(removed).WithAdmins(issued().Add(40 * time.Second)), true},
		{revokedBefore().WithNode(pki.NodeID{8}).WithAdmins(issued().Add(50 * time.Second)), true},
		{revokedBefore().WithNode(removed).WithNode(pki.NodeID{8}).WithAdmins(issued().Add(60 * time.Second)), false},
	} {
		changed, err := kept.ReplaceRevocations(revoked(t, ca, uint64(serial)+100, step.list))
		if changed == step.less || errors.Is(err, ErrRevokesLess) != step.less {
			t.Errorf("step %d: %v, %v", serial, changed, err)
		}
	}
	if i := load(t, folder); !i.Revoked.HasNode(removed) || i.Revocations.Serial != 108 {
		t.Errorf("%+v", i.Revoked)
	}
}

// TestFullDisk: a list that can't be written counts, and is written when it is given
// once more. A certificate that can't be doesn't.
func TestFullDisk(t *testing.T) {
	ca, folder := first(t), t.TempDir()
	p := parts(t, ca)
	kept := install(t, folder, build(t, p))
	changed := watch(kept)
	away := filepath.Join(folder, "away")
	if err := os.Rename(kept.directory, away); err != nil {
		t.Fatal(err)
	}
	list := revoked(t, ca, 9, revokedBefore().WithNode(pki.NodeID{9}))
	for _, want := range []bool{true, false} {
		if got, err := kept.ReplaceRevocations(list); got != want || !errors.Is(err, fs.ErrNotExist) || changed() != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	if i, _ := kept.Current(); !i.Revoked.HasNode(pki.NodeID{9}) {
		t.Error("the new list doesn't count")
	}
	renewed := certificate(t, ca, p.Key, issued().Add(time.Hour))
	if got, err := kept.ReplaceCertificate(renewed, issued()); got || !errors.Is(err, fs.ErrNotExist) || changed() {
		t.Errorf("%v, %v", got, err)
	}
	if err := os.Rename(away, kept.directory); err != nil {
		t.Fatal(err)
	}
	if load(t, folder).Revoked.HasNode(pki.NodeID{9}) {
		t.Error("the list was written")
	}
	if got, err := kept.ReplaceRevocations(list); got || err != nil || changed() {
		t.Errorf("given once more: %v, %v", got, err)
	}
	if !load(t, folder).Revoked.HasNode(pki.NodeID{9}) {
		t.Error("the list wasn't written")
	}
	if got, err := kept.ReplaceCertificate(renewed, issued()); !got || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}

// TestAtOnce replaces everything at once, in no order, while others read.
func TestAtOnce(t *testing.T) {
	const last = 12
	ca, folder := first(t), t.TempDir()
	p := parts(t, ca)
	kept := install(t, folder, build(t, p))
	peer := certificate(t, ca, newKeyOf(t, 9), issued())
	var group sync.WaitGroup
	replace := func(what func() (bool, error)) {
		group.Go(func() {
			if _, err := what(); err != nil && !errors.Is(err, document.ErrOlder) {
				t.Error(err)
			}
		})
	}
	removed := revokedBefore()
	for n := 1; n <= last; n++ {
		list := members(t, ca, uint64(10+n), fmt.Sprintf("home-%d", n), p.Key.ID())
		removed = removed.WithNode(pki.NodeID{byte(n)})
		revocations := revoked(t, ca, uint64(10+n), removed)
		renewed := certificate(t, ca, p.Key, issued().Add(time.Duration(n)*time.Minute))
		replace(func() (bool, error) { return kept.ReplaceMembership(list) })
		replace(func() (bool, error) { return kept.ReplaceRevocations(revocations) })
		replace(func() (bool, error) { return kept.ReplaceCertificate(renewed, issued()) })
	}
	final := func(i *Identity) bool {
		return i.Name() == fmt.Sprintf("home-%d", last) && i.Revoked.HasNode(pki.NodeID{last}) && i.Self.Issued.Equal(issued().Add(last*time.Minute))
	}
	for range 4 {
		group.Go(func() {
			var serial uint64
			for {
				i, changed := kept.Current()
				if i.Membership.Serial < serial || i.Check(issued()) != nil {
					t.Errorf("serial %d after %d", i.Membership.Serial, serial)
				}
				serial = i.Membership.Serial
				if _, err := i.Verify(peer, issued()); err != nil {
					t.Error(err)
				}
				if final(i) {
					return
				}
				select {
				case <-changed:
				case <-t.Context().Done():
					return
				}
			}
		})
	}
	group.Wait()
	if now, _ := kept.Current(); !final(now) || !same(t, load(t, folder), now) {
		t.Errorf("%s, %+v", now.Name(), now.Self)
	}
}
