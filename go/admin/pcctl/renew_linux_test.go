package pcctl

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRenew(t *testing.T) {
	y := newYears(t)
	y.renews("", "NODE  CERTIFICATE\n")
	y.enroll("home-1")
	colo := y.enroll("colo-1")
	y.renews("", `NODE    CERTIFICATE
colo-1  not due, expires 2027-10-28 09:00 UTC
home-1  not due, expires 2027-10-28 09:00 UTC
`)
	y.pass(125*day + 75*time.Minute)
	y.renews("", "NODE    CERTIFICATE\ncolo-1  renewed, expires 2028-03-01 10:15 UTC\n", "colo-1", "colo-1")
	// The next connection shows it.
	y.want(0, "node", "info", "colo-1")
	if got := y.stdout.String(); !strings.Contains(got, "certificate  expires 2028-03-01 10:15 UTC\n") {
		t.Error(got)
	}
	y.pass(210*day - 75*time.Minute)
	// 30 days before, to the second.
	y.renews("", `NODE    CERTIFICATE
colo-1  not due, expires 2028-03-01 10:15 UTC
home-1  renewed, expires 2028-09-27 09:00 UTC
`)
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2028-09-27 09:00 UTC\ncolo-1  renewed, expires 2028-09-27 09:00 UTC\n", "home-1", "colo-1")
	// A node's ID will do for its name. In one second, each is a second newer.
	home := y.find("home-1")
	y.want(0, "node", "renew", "--json", home.ID.String())
	y.wantStdout(fmt.Sprintf(`{"node":"home-1","id":%q,"address":%q,"certificate":"renewed","expires":"2028-09-27T09:00:02Z"}`+"\n", home.ID, home.Address.Value))
	if text := colo.Log.String(); !strings.Contains(text, "an admin has renewed the node's certificate") {
		t.Error(text)
	}
	y.wantError(`pcctl: the cluster's registry has no such node: "nobody"`, "node", "renew", "home-1", "nobody")
	y.wantStdout("")
}

// TestRenewBeforeThirtyDays: a second before it is due nothing is.
func TestRenewBeforeThirtyDays(t *testing.T) {
	y := newYears(t)
	y.enroll("home-1")
	y.pass(335*day - time.Second)
	y.renews("", "NODE    CERTIFICATE\nhome-1  not due, expires 2027-10-28 09:00 UTC\n")
	y.pass(time.Second)
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2028-09-27 09:00 UTC\n")
}

// TestExpiredNode: every command that meets one says what to do, and doing it helps.
func TestExpiredNode(t *testing.T) {
	y := newYears(t)
	volume := newVolume(t)
	home := y.start(volume)
	y.want(0, "node", "enroll", home.Address, home.EnrollmentCode(), "home-1")
	y.pass(400 * day)
	y.want(0, "login")
	const expired = "certificate has expired (renew the node's certificate with 'pcctl --repo ... node renew home-1')"
	for _, args := range [][]string{
		{"node", "reboot", "home-1"}, {"node", "poweroff", "home-1"}, {"node", "logs", "home-1"}, {"node", "ping", "home-1", "127.0.0.1"},
	} {
		y.want(1, args...)
		y.wantStderr("pcctl: " + expired + "\n")
	}
	y.want(1, "node", "info", "home-1")
	y.wantStderr("pcctl: " + expired + "\n")
	if got := y.stdout.String(); !strings.Contains(got, "certificate  EXPIRED 2027-10-28 09:00 UTC (run 'pcctl --repo ... node renew home-1')\n") {
		t.Error(got)
	}
	y.want(1, "node", "info", "--json", "home-1")
	if got := y.stdout.String(); !strings.Contains(got, `"certificate_expires":"2027-10-28T09:00:00Z"`) {
		t.Error(got)
	}
	y.want(0, "status")
	if got := y.stdout.String(); !strings.HasSuffix(got, "needs attention:\n  home-1: unreachable ("+expired+")\n") {
		t.Error(got)
	}
	y.wantError("(without --erase it can be removed all the same): "+expired, "node", "rm", "--erase", "home-1")
	y.want(0, "node", "provision", "web-1", filepath.Join(t.TempDir(), "web-1"))
	if got := y.stderr.String(); !strings.Contains(got, "warning: node home-1: "+expired+"\n") {
		t.Error(got)
	}
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2028-12-01 09:00 UTC\n", "home-1")
	y.want(0, "node", "info", "home-1")
	y.wantStderr("")

	// A node that was started again has the new one.
	if err := home.Stop(); err == nil {
		t.Error("the node ended by itself")
	}
	home = y.start(volume)
	home.IsMember()
	y.want(0, "node", "addr", "home-1", home.Address)
	y.want(0, "node", "info", "home-1")
	if got := y.stdout.String(); !strings.Contains(got, "certificate  expires 2028-12-01 09:00 UTC\n") {
		t.Error(got)
	}
	// An expired node that is open already is as good as unlocked.
	y.pass(400 * day)
	y.want(0, "node", "unlock", "home-1", "AAAA-AAAA-AAAA-AAAA")
}

// TestLifetimeOfTests: the variable shortens certificates, and says what it can't do
// before anything is done.
func TestLifetimeOfTests(t *testing.T) {
	y := newYears(t)
	const variable = "POWERCLOUD_TEST_NODE_CERT_LIFETIME"
	node := y.start(newVolume(t))
	code := node.EnrollmentCode()
	file := filepath.Join(t.TempDir(), "web-1")
	for _, bad := range []string{"1", "a year", "-1h", "0", "999ms", "8761h"} {
		y.environment[variable] = bad
		for _, args := range [][]string{{"node", "enroll", node.Address, code, "home-1"}, {"node", "provision", "web-1", file}, {"node", "renew"}} {
			y.want(2, args...)
			y.wantStderr(fmt.Sprintf("pcctl: POWERCLOUD_TEST_NODE_CERT_LIFETIME is %q and not a duration of 1s to 8760h0m0s\n", bad))
		}
	}
	if n := y.registry().Nodes; len(n) != 0 {
		t.Errorf("the registry has %+v", n)
	}
	y.environment[variable] = "48h"
	y.want(0, "node", "enroll", node.Address, code, "home-1")
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2026-10-30 09:00 UTC\n")
	delete(y.environment, variable)
	y.renews("", "NODE    CERTIFICATE\nhome-1  renewed, expires 2027-10-28 09:00 UTC\n")
	y.renews("", "NODE    CERTIFICATE\nhome-1  not due, expires 2027-10-28 09:00 UTC\n")
}
