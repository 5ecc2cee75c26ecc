package enroll

import (
	"context"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/node"
)

// withoutTime is a blank machine whose own clock says something, and that finds no time
// server.
func withoutTime(t *testing.T, clock time.Time) machine.Config {
	t.Helper()
	config := blank(t)
	config.Clock = clock
	config.Cards[0].Isolated = true
	return config
}

// clockOff returns how far a node's clock is ahead, by the time of the last record of its
// log; negative where it is behind.
func clockOff(ctx context.Context, t *testing.T, a *admin.Admin) time.Duration {
	t.Helper()
	records := strings.Split(strings.TrimSpace(a.Run(ctx, "node", "logs", name)), "\n")
	last := records[len(records)-1]
	at, err := time.Parse(time.DateTime, last[:min(len(last), len(time.DateTime))])
	if err != nil {
		t.Fatalf("the last record of the log: %v", err)
	}
	return time.Until(at)
}

// healthy expects that status finds nothing to be done.
func healthy(ctx context.Context, t *testing.T, a *admin.Admin) {
	t.Helper()
	if status := a.Run(ctx, "status"); !strings.HasSuffix(status, "all nodes healthy\n") {
		t.Errorf("status says\n%s", status)
	}
}

// TestClockBehind takes a node through enrollment and restart whose machine has lost the
// time, and that finds no time server. By its clock no certificate is valid yet.
func TestClockBehind(t *testing.T) {
	ctx := machine.Patient(t)
	a := admin.New(ctx, t)
	m := machine.Start(ctx, t, withoutTime(t, time.Date(2010, 1, 2, 3, 4, 5, 0, time.UTC)))
	enroll(ctx, t, m, a)
	if !strings.Contains(m.Console().Text(), "the clock is before this software's date, and is set to it") {
		t.Error("the node doesn't say that its clock can't be right")
	}
	for range 2 {
		healthy(ctx, t, a)
		if off := clockOff(ctx, t, a); off > -2*time.Hour {
			t.Fatalf("the node's clock, which was to be behind, is off by %v", off)
		}
		a.Run(ctx, "node", "reboot", name)
		m.WaitReset(ctx)
		unlock(ctx, t, m, a)
	}
	renew(ctx, t, a)
	if strings.Contains(m.Console().Text(), "the clock is right") {
		t.Error("the node has found a time server")
	}
}

// TestClockAhead: a machine that is years ahead, and finds no time server, can be enrolled
// and unlocked. By its clock every certificate has expired, until the clock is put right.
func TestClockAhead(t *testing.T) {
	ctx := machine.Patient(t)
	a := admin.New(ctx, t)
	m := machine.Start(ctx, t, withoutTime(t, time.Now().AddDate(4, 0, 0)))
	node.ExpectBanner(ctx, m)
	output := a.Unlocked(ctx, "node", "enroll", m.Address(ctx, port), node.Code(ctx, m, "enrollment"), name)
	if !strings.HasPrefix(output, "enrolled node home-1 ") {
		t.Errorf("node enroll printed %q", output)
	}
	m.Expect(ctx, `PowerCloud node home-1 \([0-9a-f]{16}\) is a member of the cluster`)
	refused := func() {
		t.Helper()
		if said := a.Refused(ctx, "node", "info", name); !strings.Contains(said, "the node refused the admin certificate") {
			t.Errorf("pcctl said %q", said)
		}
	}
	refused()
	m.Reset(ctx)
	m.WaitReset(ctx)
	unlock(ctx, t, m, a)
	refused()

	m.PowerOff()
	m.SetClock(time.Time{})
	m.PowerOn(ctx)
	m.Expect(ctx, `pcinit begins`)
	unlock(ctx, t, m, a)
	healthy(ctx, t, a)
	if off := clockOff(ctx, t, a); off.Abs() > machine.Patience {
		t.Errorf("the node's clock, which was put right, is off by %v", off)
	}
}
