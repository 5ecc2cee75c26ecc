package lifecycle_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/pki"
)

const day = 24 * time.Hour

// later returns the cluster after some time, with an admin's certificate of then.
func (k *cluster) later(d time.Duration) *cluster {
	k.Helper()
	l := newCluster(k.TB, keystest.First(k))
	l.issued = k.issued.Add(d)
	l.admin = laterAdmin(k, l)
	return l
}

// aged starts a node by whose clock some time has gone by since it was enrolled.
func (k *cluster) aged(volume *statetest.Volume, d time.Duration) *lifecycletest.Node {
	k.Helper()
	return lifecycletest.Start(k, volume, func(c *lifecycle.Config) {
		c.Now = func() time.Time { return k.issued.Add(d) }
	})
}

// old returns a node that was enrolled some time ago, its key and its volume.
func (k *cluster) old(d time.Duration) (*lifecycletest.Node, ed25519.PublicKey, *statetest.Volume) {
	k.Helper()
	volume := newVolume(k)
	n := k.aged(volume, d)
	offer, err := ask(k, n, route.GetOffer(), new(message.None))
	if err != nil {
		k.Fatal(err)
	}
	if _, err := k.enroll(n); err != nil {
		k.Fatal(err)
	}
	return n, offer.Key, volume
}

// expires asks a node something over a new connection, and returns when its certificate
// expires.
func (k *cluster) expires(n *lifecycletest.Node, id pki.NodeID) time.Time {
	k.Helper()
	c := k.member(n, id)
	do(k, c, route.GetMesh(), nil)
	found, _ := c.Met()
	return found.Expires
}

func idOf(t testing.TB, key ed25519.PublicKey) pki.NodeID {
	t.Helper()
	id, err := pki.NodeIDOf(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestRenewal(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n, key, volume := k.old(340 * day)
	id := idOf(t, key)
	n.Log.Await("the node's certificate expires soon; an admin renews it with 'pcctl --repo ... node renew'")
	// By the node's clock the admin's certificate of before has expired.
	if _, err := client.Do(t.Context(), k.member(n, id), route.GetInfo(), nil); !errors.Is(err, client.ErrRefused) {
		t.Error(err)
	}
	later := k.later(339 * day)
	admin := later.member(n, id)
	for serial := range uint64(3) {
		do(t, admin, route.PutMembership(), later.members(serial+1))
	}
	renewed := later.node(key, later.issued)
	do(t, admin, route.PutCertificate(), &message.Certificate{Certificate: renewed.Raw})
	if info := do(t, admin, route.GetInfo(), nil); !info.CertificateExpires.Equal(renewed.NotAfter) {
		t.Errorf("%+v", info)
	}
	if at := later.expires(n, id); !at.Equal(renewed.NotAfter) {
		t.Errorf("a new connection shows a certificate to %s", at)
	}
	// The same once more changes nothing.
	do(t, admin, route.PutCertificate(), &message.Certificate{Certificate: renewed.Raw})
	if got := strings.Count(n.Log.String(), "an admin has renewed the node's certificate"); got != 1 {
		t.Errorf("renewed %d times:\n%s", got, n.Log)
	}
	stopped(t, n)
	if got := strings.Count(n.Log.String(), "the node's certificate expires soon"); got != 1 {
		t.Errorf("it was warned of %d times in a day:\n%s", got, n.Log)
	}
	n = k.aged(volume, 341*day)
	n.IsMember()
	if at := later.expires(n, id); !at.Equal(renewed.NotAfter) {
		t.Errorf("after a restart the node shows a certificate to %s", at)
	}
}

// TestRenewalOfAnExpiredCertificate: whoever doesn't come to renew it refuses the node.
func TestRenewalOfAnExpiredCertificate(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n, key, _ := k.old(400 * day)
	id := idOf(t, key)
	n.Log.Await("the node's certificate has expired, and neither pcctl nor other nodes accept it; an admin renews it with 'pcctl --repo ... node renew'")
	later := k.later(400 * day)
	if _, err := client.Do(t.Context(), later.member(n, id), route.GetInfo(), nil); !errors.Is(err, client.ErrNodeExpired) {
		t.Error(err)
	}
	lenient := client.New(client.Peer{Address: parse(t, n.Address), Authority: k.ca.Authority(), ID: id, Expired: true},
		later.admin, func() time.Time { return later.issued })
	defer lenient.Close()
	renewed := later.node(key, later.issued)
	do(t, lenient, route.PutCertificate(), &message.Certificate{Certificate: renewed.Raw})
	if at := later.expires(n, id); !at.Equal(renewed.NotAfter) {
		t.Errorf("the node shows a certificate to %s", at)
	}
}

// TestRefusedCertificates: what isn't a newer certificate of the node's own leaves the
// one that it has, whoever asks.
func TestRefusedCertificates(t *testing.T) {
	k, other := newCluster(t, keystest.First(t)), newCluster(t, keystest.Second(t))
	n, key, _ := k.old(20 * day)
	later := k.later(20 * day)
	id := idOf(t, key)
	admin := later.member(n, id)
	do(t, admin, route.PutCertificate(), &message.Certificate{Certificate: later.node(key, later.issued).Raw})
	before := later.expires(n, id)
	another, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	asAdmin, err := later.ca.IssueAdmin(key, later.issued, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := later.ca.IssueNode(key, later.issued.Add(-2*time.Hour), time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		der        []byte
		code, want string
	}{
		"nothing":              {nil, "", "can't be read"},
		"no certificate":       {[]byte("none"), "", "can't be read"},
		"two":                  {append(later.node(key, later.issued).Raw, later.node(key, later.issued).Raw...), "", "can't be read"},
		"the one before":       {k.node(key, k.issued).Raw, message.CodeOlder, "older"},
		"another key's":        {later.node(another, later.issued).Raw, "", "is not for this node's key"},
		"another cluster's":    {other.node(key, later.issued).Raw, "", "not a certificate of this cluster"},
		"an admin's":           {asAdmin.Raw, "", "its role is admin instead of node"},
		"the authority's":      {later.ca.Authority().Certificate().Raw, "", "not a certificate of this cluster"},
		"expired":              {expired.Raw, "", "certificate has expired"},
		"of another day's":     {later.node(key, later.issued.Add(day)).Raw, "", "certificate is not valid yet; compare the clocks"},
		"the node's of a year": {later.node(key, later.issued.Add(364*day)).Raw, "", "certificate is not valid yet"},
	} {
		_, err := client.Do(t.Context(), admin, route.PutCertificate(), &message.Certificate{Certificate: append([]byte{}, test.der...)})
		if !message.HasCode(err, test.code) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	// A node that was removed gets none, though its admin thinks otherwise.
	do(t, admin, route.PutRevocations(), later.revoked(2, revocation.List{}.WithNode(id)))
	_, err = client.Do(t.Context(), admin, route.PutCertificate(), &message.Certificate{Certificate: later.node(key, later.issued.Add(time.Second)).Raw})
	if err == nil || !strings.Contains(err.Error(), "was removed from the cluster") {
		t.Errorf("a node that was removed: %v", err)
	}
	if at := later.expires(n, id); !at.Equal(before) {
		t.Errorf("the node's certificate was one to %s and is one to %s", before, at)
	}
}

// TestClockBehind: the node's clock is years before the issue of its certificate, and
// an admin's certificate is as good as that.
func TestClockBehind(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n := lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Now = func() time.Time { return time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC) }
	})
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	admin := k.member(n, id)
	do(t, admin, route.GetInfo(), nil)
	// So is a renewed one.
	found, _ := admin.Met()
	renewed := k.node(found.Key, k.issued.Add(time.Minute))
	do(t, admin, route.PutCertificate(), &message.Certificate{Certificate: renewed.Raw})
	if at := k.expires(n, id); !at.Equal(renewed.NotAfter) {
		t.Errorf("the node shows a certificate to %s", at)
	}
	// And so is that of an admin who got it a month later, and what that one brings.
	later := k.later(30 * 24 * time.Hour)
	do(t, later.member(n, id), route.GetInfo(), nil)
	renewed = later.node(found.Key, later.issued)
	do(t, later.member(n, id), route.PutCertificate(), &message.Certificate{Certificate: renewed.Raw})
	if at := later.expires(n, id); !at.Equal(renewed.NotAfter) {
		t.Errorf("the node shows a certificate to %s", at)
	}
}

// TestCertificateOfTheFuture: a node whose clock is right takes none whose time has yet to
// come, as that can't be revoked until then.
func TestCertificateOfTheFuture(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n := lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Now = func() time.Time { return k.issued }
		c.Synced = func() bool { return true }
	})
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	admin := k.member(n, id)
	do(t, admin, route.GetInfo(), nil)
	do(t, k.later(pki.Allowance).member(n, id), route.GetInfo(), nil)
	later := k.later(pki.Allowance + time.Second)
	if _, err := client.Do(t.Context(), later.member(n, id), route.GetInfo(), nil); !errors.Is(err, client.ErrRefused) {
		t.Errorf("an admin's: %v", err)
	}
	found, _ := admin.Met()
	if _, err := client.Do(t.Context(), admin, route.PutCertificate(), &message.Certificate{Certificate: k.node(found.Key, later.issued).Raw}); err == nil || !strings.Contains(err.Error(), "not valid yet") {
		t.Errorf("the node's: %v", err)
	}
	// Where a clock that was ahead has revoked all before, there are no others.
	do(t, admin, route.PutRevocations(), k.revoked(2, revocation.List{}.WithAdmins(later.issued)))
	do(t, later.member(n, id), route.GetInfo(), nil)
}

// TestBundleAndWrongClock: whatever its clock says, a machine joins by a good bundle.
func TestBundleAndWrongClock(t *testing.T) {
	for _, year := range []int{2001, 2001 + 100} {
		k := newCluster(t, keystest.First(t))
		n := lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
			given(k.bundle(k))(c)
			c.Now = func() time.Time { return time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC) }
		})
		id, err := pki.ParseNodeID(n.Shows(`PowerCloud node web-1 \((\S+)\)`))
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.Do(t.Context(), k.member(n, id), route.GetInfo(), nil)
		// Who sets a clock ahead keeps everybody out until it is put right: nobody can tell
		// a certificate that has expired from one that only seems so.
		if ahead := year > 2100; ahead != errors.Is(err, client.ErrRefused) || !ahead && err != nil {
			t.Errorf("in %d: %v", year, err)
		}
	}
}

// TestBundleOfOldKeys: a bundle that was made before the cluster got new keys makes a node
// of the cluster as it was. Neither side takes the other for one of its own.
func TestBundleOfOldKeys(t *testing.T) {
	before, after := keystest.First(t), keystest.Second(t)
	after.ID = before.ID
	k, rotated := newCluster(t, before), newCluster(t, after)
	n := lifecycletest.Start(t, newVolume(t), given(k.bundle(k)))
	id, err := pki.ParseNodeID(n.Shows(`PowerCloud node web-1 \((\S+)\)`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Do(t.Context(), rotated.member(n, id), route.GetInfo(), nil); !errors.Is(err, client.ErrNotMember) {
		t.Errorf("an admin of the new keys: %v", err)
	}
	// What the new keys have signed, nobody can have it take.
	admin := k.member(n, id)
	if _, err := client.Do(t.Context(), admin, route.PutRevocations(), rotated.revoked(9, revocation.List{}.WithNode(id))); err == nil {
		t.Error("it takes a list of the new keys")
	}
	if got := do(t, admin, route.GetInfo(), nil); got.Revocations == 9 {
		t.Errorf("%+v", got)
	}
	// A bundle that is neither is refused.
	mixed := k.bundle(k)
	mixed.CACertificate = rotated.bundle(rotated).CACertificate
	n = lifecycletest.Start(t, newVolume(t), given(mixed))
	n.EnrollmentCode()
}
