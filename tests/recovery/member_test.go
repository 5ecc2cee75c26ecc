package recovery

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/tests/admin"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tests/namespace"
	"powercloud.unidatum.com/tests/node"
)

// TestPanicInTheLog has the kernel of an enrolled node panic. What its admin reads
// afterwards says why, for as long as the log on the state volume goes back.
func TestPanicInTheLog(t *testing.T) {
	// It is where pcctl reaches the machine.
	namespace.Loopback(t)
	ctx := machine.Patient(t)
	config := sabotaged(t)
	config.Cards[0].Forward = []int{node.Port}
	a := admin.New(ctx, t)
	m := start(ctx, t, config)
	a.Unlocked(ctx, "node", "enroll", m.Address(ctx, node.Port), node.Code(ctx, m, "enrollment"), "home-1")
	logs := func(boot string) string { return a.Run(ctx, "node", "logs", "--boot", boot, "home-1") }
	if said := logs("panic"); said != "" {
		t.Errorf("of a node that has just been enrolled there are panics:\n%s", said)
	}
	unlock := func() {
		m.Expect(ctx, `PowerCloud node home-1 \([0-9a-f]{16}\) is locked`)
		code := node.Code(ctx, m, "unlock")
		a.Unlocked(ctx, "node", "unlock", "home-1", code, m.Address(ctx, node.Port))
	}
	order(t, m, "signal 1 %d", unix.SIGABRT)
	m.Expect(ctx, `Kernel panic - not syncing: Attempted to kill init!`)
	m.WaitReset(ctx)
	unlock()
	expect := func(boot string, words ...string) {
		t.Helper()
		said := logs(boot)
		for _, want := range words {
			if !strings.Contains(said, want) {
				t.Errorf("the log of the boot %q is without %q:\n%s", boot, want, said)
			}
		}
	}
	const panicked = "Kernel panic - not syncing: Attempted to kill init!"
	expect("previous", "pcinit begins", "enrolled from the console", panicked)
	expect("panic", "SIGABRT: abort", "main.main()", panicked)
	expect("current", "an earlier boot ended badly")

	// Two boots later it isn't of the boot before any more, but it is kept.
	for range 2 {
		ctx = machine.Patient(t)
		m.Reset(ctx)
		m.WaitReset(ctx)
		unlock()
	}
	// It began with the panic's last line, as every start says until one has gone well.
	if said := logs("previous"); strings.Contains(said, "SIGABRT: abort") || !strings.Contains(said, "pcinit begins") {
		t.Errorf("the log of the boot before, which ended otherwise:\n%s", said)
	}
	expect("panic", "main.main()", panicked)
}
