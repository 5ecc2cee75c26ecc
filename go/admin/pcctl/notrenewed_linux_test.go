package pcctl

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/node/identity"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/lifecycle/lifecycletest"
)

// TestNotRenewed: what keeps one node from being renewed keeps no other from it.
func TestNotRenewed(t *testing.T) {
	y := newYears(t)
	y.enroll("home-1")
	down, locked, moved := y.enroll("down"), newVolume(t), y.enroll("moved")
	sleeping := y.start(locked)
	y.want(0, "node", "enroll", sleeping.Address, sleeping.EnrollmentCode(), "locked")
	y.want(0, "node", "provision", "web-1", filepath.Join(t.TempDir(), "web-1"))
	gone := y.enroll("gone")
	y.want(0, "node", "rm", "gone")
	// Somebody else's cluster has a node where this one's was.
	foreign := newYears(t)
	foreign.bed.Cluster = keystest.Second(t)
	foreign.bed.Init()
	foreign.environment["POWERCLOUD_RECOVERY_KEY"] = foreign.bed.Cluster.Recovery.String()
	stranger := foreign.enroll("home-1")
	y.enroll("taken")
	y.want(0, "node", "addr", "taken", stranger.Address)
	// Two nodes of this one have each other's address.
	y.want(0, "node", "addr", "moved", y.find("home-1").Address.Value.String())
	if err := down.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	if err := sleeping.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	locked.Lock()
	sleeping = y.start(locked)
	sleeping.UnlockCode()
	y.want(0, "node", "addr", "locked", sleeping.Address)
	y.pass(500 * day)

	y.want(1, "node", "renew")
	y.wantSaid("pcctl: 5 nodes not renewed: down, locked, moved, taken, web-1\n")
	lines := strings.Split(y.stdout.String(), "\n")
	for i, want := range []string{
		"NODE    CERTIFICATE",
		"down    not renewed: dial tcp " + down.Address + ": connect: connection refused",
		"home-1  renewed, expires 2029-03-11 09:00 UTC",
		"locked  not renewed: it isn't a node of this cluster: ",
		"moved   not renewed: it is another node: it is node " + y.find("home-1").ID.String() + " and not node " + y.find("moved").ID.String(),
		"taken   not renewed: it isn't a node of this cluster: ",
		"web-1   not renewed: no address yet (run 'pcctl --repo ... node addr web-1 HOST')",
		"",
	} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d isn't %q:\n%s", i, want, y.stdout.String())
		}
	}
	if want := " (if it is locked, unlock it first with 'pcctl --repo ... node unlock locked CODE')"; !strings.HasSuffix(lines[3], want) {
		t.Errorf("%q", lines[3])
	}
	for _, n := range []*lifecycletest.Node{moved, stranger, gone} {
		if text := n.Log.String(); strings.Contains(text, "has renewed") {
			t.Errorf("a node that wasn't meant got a certificate:\n%s", text)
		}
	}
	y.want(1, "node", "renew", "--json", "web-1")
	y.wantStdout(fmt.Sprintf(`{"node":"web-1","id":%q,"certificate":"not renewed","error":"no address yet (run 'pcctl --repo ... node addr web-1 HOST')"}`+"\n", y.find("web-1").ID))
	y.wantStderr("pcctl: 1 node not renewed: web-1\n")
	for _, name := range []string{"gone", gone.Shows(`PowerCloud node \S+ \((\S+)\)`)} {
		y.wantError("the cluster's registry has no such node: \""+name+"\"", "node", "renew", name)
	}
	// Where it is found, it is renewed.
	y.want(0, "node", "addr", "moved", moved.Address)
	y.renews("", "NODE   CERTIFICATE\nmoved  renewed, expires 2029-03-11 09:00 UTC\n", "moved")
}

// TestNodeThatNeverCame: an enrollment that came to nothing doesn't make every renewal
// fail; by its name the node is asked all the same.
func TestNodeThatNeverCame(t *testing.T) {
	y := newYears(t)
	node := y.start(newVolume(t))
	c := newCable(t, node.Address)
	c.cutAt(2, answerLost, nil)
	y.want(1, "node", "enroll", c.listener.Addr().String(), node.EnrollmentCode(), "home-1")
	node.IsMember()
	c.cutAt(0, before, nil)
	y.renews("", "NODE  CERTIFICATE\n")
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2027-10-28 09:00 UTC\n", "home-1")
}

// TestRenewByAnotherClock: a clock that is a little behind that of the admin before makes
// no certificate that the node refuses as older, and one that is far behind is noticed.
func TestRenewByAnotherClock(t *testing.T) {
	y := newYears(t)
	y.enroll("home-1")
	y.bed.Now = y.bed.Now.Add(-40 * time.Minute)
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2027-10-28 09:00 UTC\n", "home-1")
	y.bed.Now = y.bed.Now.Add(-40 * time.Minute)
	y.want(1, "node", "renew", "home-1")
	if got := y.stdout.String(); !strings.Contains(got, "home-1  not renewed: it isn't a node of this cluster: certificate is not valid yet; compare the clocks: ") || strings.Contains(got, "locked") {
		t.Error(got)
	}
	// Ahead, it is the node that notices.
	y.bed.Now = y.bed.Now.Add(5 * time.Hour)
	y.want(1, "node", "renew", "home-1")
	if got := y.stdout.String(); !strings.Contains(got, "home-1  not renewed: the node refused the certificate: ") {
		t.Error(got)
	}
}

// TestTwoAdminsRenew: they do it at the same moment, and both have what they wanted.
func TestTwoAdminsRenew(t *testing.T) {
	y := newYears(t)
	y.enroll("home-1")
	other := y.another()
	for range 5 {
		var both sync.WaitGroup
		for _, admin := range []*trial{y.trial, other} {
			both.Go(func() {
				if status := admin.run(t.Context(), "node", "renew", "home-1"); status != 0 {
					t.Errorf("status %d\n%s%s", status, admin.stdout.String(), admin.stderr.String())
				}
			})
		}
		both.Wait()
	}
}

// TestRenewalWhoseAnswerIsLost: the node has its new certificate, and pcctl finds that
// out, or says that it can't.
func TestRenewalWhoseAnswerIsLost(t *testing.T) {
	for name, torn := range map[string]bool{"dropped": false, "torn": true} {
		t.Run(name, func(t *testing.T) {
			y := newYears(t)
			volume := newVolume(t)
			var w atomic.Pointer[wire]
			node := y.start(volume, func(c *lifecycle.Config) {
				c.Log = slog.New(slog.NewTextHandler(when{"an admin has renewed", func() {
					if torn {
						_ = w.Load().Close()
					}
					w.Load().drop()
				}}, nil))
			})
			w.Store(newWire(t, node.Address))
			y.want(0, "node", "enroll", w.Load().Addr().String(), node.EnrollmentCode(), "home-1")
			y.pass(350 * day)
			if torn {
				y.want(1, "node", "renew")
				if got := y.stdout.String(); !strings.HasSuffix(got, "; whether the node took the new one isn't known: run the command again\n") {
					t.Error(got)
				}
				y.want(0, "node", "addr", "home-1", node.Address)
				y.renews("", "NODE    CERTIFICATE\nhome-1  not due, expires 2028-10-12 09:00 UTC\n")
			} else {
				y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2028-10-12 09:00 UTC\n")
			}
			kept, err := identity.Load(volume.Folder)
			if err != nil {
				t.Fatal(err)
			}
			if i, _ := kept.Current(); !i.Self.Expires.Equal(y.now.Add(365 * day)) {
				t.Errorf("the node keeps a certificate to %s", i.Self.Expires)
			}
		})
	}
}

// TestCertificateThatCannotBeKept: the node's disk is full. It goes on with the one that
// it has.
func TestCertificateThatCannotBeKept(t *testing.T) {
	y := newYears(t)
	volume := newVolume(t)
	node := y.start(volume)
	y.want(0, "node", "enroll", node.Address, node.EnrollmentCode(), "home-1")
	directory := filepath.Join(volume.Folder, "identity")
	if err := os.Rename(directory, directory+".away"); err != nil {
		t.Fatal(err)
	}
	y.want(1, "node", "renew", "home-1")
	if got := y.stdout.String(); !strings.Contains(got, "home-1  not renewed: keeping the node's new certificate: ") {
		t.Error(got)
	}
	y.renews("", "NODE    CERTIFICATE\nhome-1  not due, expires 2027-10-28 09:00 UTC\n")
	if err := os.Rename(directory+".away", directory); err != nil {
		t.Fatal(err)
	}
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2027-10-28 09:00 UTC\n", "home-1")
}
