package lifecycle_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/api/client"
	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/route"
	"powercloud.unidatum.com/go/cluster/joinbundle"
	"powercloud.unidatum.com/go/cluster/membership"
	"powercloud.unidatum.com/go/cluster/revocation"
	"powercloud.unidatum.com/go/cluster/volumeid"
	"powercloud.unidatum.com/go/keys/code"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/join"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
	"powercloud.unidatum.com/go/node/state"
	"powercloud.unidatum.com/go/node/state/statetest"
	"powercloud.unidatum.com/go/node/volume/header"
	"powercloud.unidatum.com/go/pki"
)

func TestFromTheConsole(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := newVolume(t)
	n := lifecycletest.Start(t, volume, nil)
	if offer, err := ask(t, n, route.GetOffer(), new(message.None)); err != nil || !offer.Disk || offer.Version != "dev" {
		t.Errorf("%+v, %v", offer, err)
	}
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever hears that the node is a member finds it as one.
	do(t, k.member(n, id), route.GetMesh(), nil)
	n.Shows(fmt.Sprintf(`PowerCloud node home-1 \(%s\) is a member of the cluster %s\.`, id, keystest.First(t).ID))
	stopped(t, n)

	// pcd alone was started again: the volume is still open.
	n = lifecycletest.Start(t, volume, nil)
	n.IsMember()
	do(t, k.member(n, id), route.GetMesh(), nil)
}

// TestRefusedRequests: what isn't a good request leaves the node as it was.
func TestRefusedRequests(t *testing.T) {
	k, other := newCluster(t, keystest.First(t)), newCluster(t, keystest.Second(t))
	n := lifecycletest.Start(t, newVolume(t), nil)
	offer, err := ask(t, n, route.GetOffer(), new(message.None))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*message.Enrollment){
		"a bad name":          func(e *message.Enrollment) { e.Name = "-" },
		"a path":              func(e *message.Enrollment) { e.Name = "../x" },
		"another authority":   func(e *message.Enrollment) { e.Authority = other.ca.Authority().Certificate().Raw },
		"no certificate":      func(e *message.Enrollment) { e.Certificate = nil },
		"another certificate": func(e *message.Enrollment) { e.Certificate = e.Authority },
	} {
		request := &message.Enrollment{Name: "home-1", Authority: k.ca.Authority().Certificate().Raw,
			Certificate: k.node(offer.Key, k.issued).Raw, Volume: volumeid.ID{1}}
		change(request)
		var said *message.Error
		if _, err := ask(t, n, route.Enroll(), request); !errors.As(err, &said) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := k.enroll(n); err != nil {
		t.Error(err)
	}
}

func TestVolumeThatCannotBeMade(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := newVolume(t)
	failing := errors.New("state disk /dev/vda2 holds data that is not a PowerCloud volume; refusing to format it")
	volume.Creating = func(context.Context) error { return failing }
	n := lifecycletest.Start(t, volume, nil)
	if _, err := k.enroll(n); err == nil || err.Error() != failing.Error() {
		t.Errorf("the admin reads %v", err)
	}
	failing = nil
	if _, err := k.enroll(n); err != nil {
		t.Error(err)
	}
}

// given has a node find a join bundle, as join.Find does.
func given(b *joinbundle.Bundle) func(*lifecycle.Config) {
	return func(c *lifecycle.Config) {
		c.Bundle = func(_ context.Context, check join.Check) (*joinbundle.Bundle, error) {
			if err := check(b); err != nil {
				return nil, fmt.Errorf("%w: %w", join.ErrNone, err)
			}
			copied := *b
			return &copied, nil
		}
	}
}

func TestByBundle(t *testing.T) {
	k, other := newCluster(t, keystest.First(t)), newCluster(t, keystest.Second(t))
	good := k.bundle(k)
	n := lifecycletest.Start(t, newVolume(t), given(good))
	n.Shows(`PowerCloud node web-1 `)
	if text := n.Log.String(); !strings.Contains(text, "joined the cluster with a join bundle") {
		t.Error(text)
	}
	certificate, err := k.ca.Authority().IdentifyNode(parseCertificate(t, good.NodeCertificate))
	if err != nil {
		t.Fatal(err)
	}
	do(t, k.member(n, certificate.Node), route.GetMesh(), nil)

	n = lifecycletest.Start(t, newVolume(t), given(k.bundle(other)))
	if _, err := k.enroll(n); err != nil {
		t.Errorf("after a bundle of another cluster's: %v", err)
	}

	volume := newVolume(t)
	tries := 0
	volume.Creating = func(context.Context) error {
		if tries++; tries == 1 {
			return errors.New("the disk is full of holes")
		}
		return nil
	}
	n = lifecycletest.Start(t, volume, given(good))
	if _, err := k.enroll(n); err != nil {
		t.Errorf("after a bundle that was not installed: %v", err)
	}
	if text := n.Log.String(); !strings.Contains(text, `msg="join bundle not installed" err="the disk is full of holes"`) {
		t.Error(text)
	}
}

func TestUnlock(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := newVolume(t)
	n := lifecycletest.Start(t, volume, nil)
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, n)
	volume.Lock()
	n = lifecycletest.Start(t, volume, nil)
	n.Shows(fmt.Sprintf("^PowerCloud node home-1 \\(%s\\) is locked: its state volume is encrypted\\.\nOn your admin machine run: pcctl --repo \\.\\.\\. node unlock home-1\nunlock code: \\S+\n$", id))
	var fingerprint pki.Fingerprint
	typed, err := code.Parse(n.UnlockCode(), len(fingerprint))
	if err != nil {
		t.Fatal(err)
	}
	copy(fingerprint[:], typed)
	pinned := func() *client.Client {
		c, err := client.Pinned(t.Context(), parse(t, n.Address), fingerprint, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	if lock := do(t, pinned(), route.GetLock(), nil); lock.ID != id || lock.Volume != (volumeid.ID{1}) || lock.Name != "home-1" {
		t.Errorf("%+v", lock)
	}
	wantCode(t, message.CodeState, pinned(), route.GetMesh(), nil)
	wantCode(t, message.CodeUnlock, pinned(), route.Unlock(), &message.Unlock{Volume: volumeid.ID{1}, VolumeKey: message.Key{8}})
	wantCode(t, message.CodeUnlock, pinned(), route.Unlock(), &message.Unlock{Volume: volumeid.ID{2}, VolumeKey: volumeKey()})
	do(t, pinned(), route.Unlock(), &message.Unlock{Volume: volumeid.ID{1}, VolumeKey: volumeKey()})
	do(t, k.member(n, id), route.GetMesh(), nil)
}

// TestForgedOwner: one copy of the header is forged. The node says nothing of its name, as
// that may be anything, and opens with the key of the true one.
func TestForgedOwner(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := newVolume(t)
	n := lifecycletest.Start(t, volume, nil)
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, n)
	volume.Lock()
	forged := header.Owner{Volume: volumeid.ID{9}, Node: pki.NodeID{9}, Name: "x;reboot|sh"}
	volume.Forged = &forged
	n = lifecycletest.Start(t, volume, nil)
	n.Shows(fmt.Sprintf("^PowerCloud node %[1]s \\(%[1]s\\) is locked: its state volume is encrypted\\.\nOn your admin machine run: pcctl --repo \\.\\.\\. node unlock %[1]s\nunlock code: \\S+\n$", forged.Node))
	var fingerprint pki.Fingerprint
	typed, err := code.Parse(n.UnlockCode(), len(fingerprint))
	if err != nil {
		t.Fatal(err)
	}
	copy(fingerprint[:], typed)
	c, err := client.Pinned(t.Context(), parse(t, n.Address), fingerprint, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if lock := do(t, c, route.GetLock(), nil); lock.ID != forged.Node || len(lock.Others) != 1 || lock.Others[0].ID != id || lock.Others[0].Volume != (volumeid.ID{1}) {
		t.Errorf("%+v", lock)
	}
	if c, err = client.Pinned(t.Context(), parse(t, n.Address), fingerprint, nil); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	do(t, c, route.Unlock(), &message.Unlock{Volume: volumeid.ID{1}, VolumeKey: volumeKey()})
	do(t, k.member(n, id), route.GetMesh(), nil)
}

func TestPowerAndErase(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n, admin, _ := k.open()
	for _, action := range []string{message.Reboot, message.PowerOff} {
		do(t, admin, route.Power(), &message.Power{Action: action})
		if got := <-n.Power; got != action {
			t.Errorf("%s instead of %s", got, action)
		}
	}
	wantCode(t, "", admin, route.Power(), &message.Power{Action: "explode"})
	do(t, admin, route.Erase(), nil)
	if got := <-n.Power; got != message.PowerOff {
		t.Errorf("after it was erased: %s", got)
	}
}

// TestErased: what was erased comes back blank, and can be enrolled.
func TestErased(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	place := state.Folder{Path: filepath.Join(t.TempDir(), "state"), Parts: identity.Names(), Used: func(folder string) (bool, error) {
		_, err := identity.Load(folder)
		if errors.Is(err, identity.ErrNone) {
			return false, nil
		}
		return err == nil, err
	}}
	n := lifecycletest.Start(t, place, nil)
	id, err := k.enroll(n)
	if err != nil {
		t.Fatal(err)
	}
	stopped(t, n)
	n = lifecycletest.Start(t, place, nil)
	n.IsMember()
	do(t, k.member(n, id), route.Erase(), nil)
	stopped(t, n)
	n = lifecycletest.Start(t, place, nil)
	if again, err := k.enroll(n); err != nil || again == id {
		t.Errorf("%s after %s, %v", again, id, err)
	}
}

func TestLists(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	n, admin, id := k.open()
	put := func(serial uint64, name string) *message.Document {
		return k.members(serial, membership.Node{Name: name, ID: id})
	}
	if got := do(t, admin, route.PutMembership(), put(5, "other")); got.Serial != 5 {
		t.Errorf("%+v", got)
	}
	do(t, admin, route.PutMembership(), put(5, "other"))
	wantCode(t, message.CodeOlder, admin, route.PutMembership(), put(4, "home-1"))
	if info := do(t, admin, route.GetInfo(), nil); info.Name != "other" || info.Membership != 5 || info.Revocations != 0 {
		t.Errorf("%+v", info)
	}
	forged := put(6, "third")
	forged.Signed[len(forged.Signed)-1] ^= 1
	wantCode(t, "", admin, route.PutMembership(), forged)
	wantCode(t, "", admin, route.PutMembership(), k.revoked(9, revocation.List{}))

	if got := do(t, admin, route.GetRevocations(), nil); len(got.Signed) != 0 {
		t.Errorf("a node without a revocation list has %x", got.Signed)
	}
	if got := do(t, admin, route.PutRevocations(), k.revoked(2, revocation.List{}.WithNode(pki.NodeID{3}))); got.Serial != 2 {
		t.Errorf("%+v", got)
	}
	wantCode(t, message.CodeOlder, admin, route.PutRevocations(), k.revoked(1, revocation.List{}))
	wantCode(t, message.CodeOlder, admin, route.PutRevocations(), k.revoked(3, revocation.List{}))
	if got := do(t, admin, route.GetRevocations(), nil); !bytes.Equal(got.Signed, k.revoked(2, revocation.List{}.WithNode(pki.NodeID{3})).Signed) {
		t.Errorf("the node has another list: %x", got.Signed)
	}
	// The admin is revoked by the request that is answered; the connection is no use any
	// more.
	do(t, admin, route.PutRevocations(), k.revoked(3, revocation.List{}.WithNode(pki.NodeID{3}).WithAdmins(k.issued.Add(time.Second))))
	wantCode(t, message.CodeDenied, admin, route.GetInfo(), nil)
	if _, err := client.Do(t.Context(), k.member(n, id), route.GetInfo(), nil); !errors.Is(err, client.ErrRefused) {
		t.Errorf("a new connection: %v", err)
	}
}

// TestEndWhileTheVolumeIsMade: the run ends only when nobody is at the place any more.
func TestEndWhileTheVolumeIsMade(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := newVolume(t)
	begun := make(chan struct{})
	var left atomic.Bool
	volume.Creating = func(ctx context.Context) error {
		close(begun)
		<-ctx.Done()
		left.Store(true)
		return ctx.Err()
	}
	n := lifecycletest.Start(t, volume, nil)
	heard := make(chan error)
	go func() {
		_, err := k.enroll(n)
		heard <- err
	}()
	<-begun
	stopped(t, n)
	if !left.Load() {
		t.Error("the run has ended and somebody still makes a volume")
	}
	if err := <-heard; err == nil {
		t.Error("the node said that it was enrolled")
	}
}

// damaging is a place at which an identity is damaged as soon as it is there.
type damaging struct{ *statetest.Volume }

func (d damaging) Create(ctx context.Context, owner header.Owner, key *header.Key, populate func(string) error) (string, error) {
	return d.Volume.Create(ctx, owner, key, func(folder string) error {
		return errors.Join(populate(folder), os.Remove(filepath.Join(folder, "identity", "node.crt")))
	})
}

func TestDamagedIdentity(t *testing.T) {
	k := newCluster(t, keystest.First(t))
	volume := damaging{newVolume(t)}
	n := lifecycletest.Start(t, volume, nil)
	if _, err := k.enroll(n); err == nil || err.Error() != "the node could not go on; its console says why" {
		t.Errorf("the admin reads %v", err)
	}
	// So it is after a restart, too.
	for range 2 {
		if err := n.Ended(); !errors.Is(err, identity.ErrDamaged) {
			t.Errorf("it ended with %v", err)
		}
		n.Shows(`^This node can't go on: the node's identity is damaged: there is no node\.crt\.\n$`)
		n = lifecycletest.Start(t, volume, nil)
	}
}

func TestCannotBegin(t *testing.T) {
	several := errors.New("several PowerCloud state partitions: remove or erase the disk that isn't wanted")
	n := lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Place = func(context.Context) (state.Place, error) { return nil, several }
	})
	if err := n.Ended(); !errors.Is(err, several) {
		t.Error(err)
	}
	n.Shows(`^This node can't go on: several PowerCloud state partitions: `)

	taken := errors.New("address already in use")
	n = lifecycletest.Start(t, newVolume(t), func(c *lifecycle.Config) {
		c.Listen = func(context.Context) (net.Listener, error) { return nil, taken }
	})
	if err := n.Ended(); !errors.Is(err, taken) {
		t.Error(err)
	}
	// No code was shown that nothing answers to.
	n.Shows(`^This node can't go on: the API can't listen: address already in use\.\n$`)
}
