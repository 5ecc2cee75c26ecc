//go:build linux && (amd64 || arm64)

package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/crash/ptrace"
)

// One test for each scenario lets a test runner share them out.

func TestKilledPut(t *testing.T)                { killEverywhere(t, "Put") }
func TestKilledPutTree(t *testing.T)            { killEverywhere(t, "PutTree") }
func TestKilledPutKnownContent(t *testing.T)    { killEverywhere(t, "PutKnownContent") }
func TestKilledPutRecordedGarbage(t *testing.T) { killEverywhere(t, "PutRecordedGarbage") }
func TestKilledOverwrite(t *testing.T)          { killEverywhere(t, "Overwrite") }
func TestKilledRemove(t *testing.T)             { killEverywhere(t, "Remove") }
func TestKilledRepair(t *testing.T)             { killEverywhere(t, "Repair") }
func TestKilledRepairVerify(t *testing.T)       { killEverywhere(t, "RepairVerify") }
func TestKilledAddRecoveryKey(t *testing.T)     { killEverywhere(t, "AddRecoveryKey") }
func TestKilledCollectFirstRun(t *testing.T)    { killEverywhere(t, "CollectFirstRun") }
func TestKilledCollectSecondRun(t *testing.T)   { killEverywhere(t, "CollectSecondRun") }
func TestKilledCollectTombstones(t *testing.T)  { killEverywhere(t, "CollectTombstones") }

func TestKilledCodedPut(t *testing.T)               { killCoded(t, "Put") }
func TestKilledCodedOverwrite(t *testing.T)         { killCoded(t, "Overwrite") }
func TestKilledCodedRemove(t *testing.T)            { killCoded(t, "Remove") }
func TestKilledCodedRepair(t *testing.T)            { killCoded(t, "Repair") }
func TestKilledCodedRepairVerify(t *testing.T)      { killCoded(t, "RepairVerify") }
func TestKilledCodedCollectSecondRun(t *testing.T)  { killCoded(t, "CollectSecondRun") }
func TestKilledCodedCollectTombstones(t *testing.T) { killCoded(t, "CollectTombstones") }

// prepared makes the cluster that a scenario's command starts with.
func prepared(t *testing.T, s scenario, at places) cluster {
	t.Helper()
	c := newCluster(t, at)
	storeUntouched(t, c)
	if s.prepare != nil {
		s.prepare(t, c)
	}
	return c
}

// copyOf makes another cluster for a run of the command.
func (s scenario) copyOf(t *testing.T, start cluster, dir string) cluster {
	t.Helper()
	c := start.copyTo(t, dir)
	if s.each != nil {
		s.each(t, c)
	}
	return c
}

// maxFaults ends a test that fails all the time.
const maxFaults = 3

// killEverywhere kills a scenario's command at each of its calls.
func killEverywhere(t *testing.T, name string) { kill(t, name, replicated(), 1) }

// codedStride is by how many calls the ones lie apart at which a command is killed that
// writes to an erasure-coded set: it makes many, and most are alike. A prime, so that
// each of the parts has its turn.
const codedStride = 7

// killCoded kills a scenario's command at some of its calls, over an erasure-coded
// set.
func killCoded(t *testing.T, name string) { kill(t, name, coded(), codedStride) }

// kill runs a scenario's command again and again, from the same start, and kills it
// at its first call that changes the file system, at the one so many calls later, and
// so on, until it gets through.
func kill(t *testing.T, name string, at places, stride int) {
	t.Parallel()
	s := scenarios()[name]
	start := prepared(t, s, at)
	for n, faults := 1, 0; faults < maxFaults; n += stride {
		c := s.copyOf(t, start, fmt.Sprintf("%s-%d", start.dir, n))
		calls, r, killed := c.killAt(t, n, s.args)
		own := s.during
		if !killed {
			own = s.after
		}
		err := c.verify(t, s, own)
		if err == nil && n%2 == 1 { // every other time, to save time
			err = c.repeat(t, s)
		}
		if !killed && r.status != 0 {
			err = fmt.Errorf("it failed: %v", r)
		}
		if err != nil {
			faults++
			t.Errorf("%s, killed (%v) at call %d of pcctl %s:\n%s\n%v\n%s",
				name, killed, n, strings.Join(s.args, " "), lastCalls(c, calls), err, c.tree())
		}
		if err := os.RemoveAll(c.dir); err != nil {
			t.Fatal(err)
		}
		if !killed {
			t.Logf("%d calls", n-1)
			return
		}
	}
}

// killAt runs a command, kills it at its nth call and returns the calls that
// it came to.
func (c cluster) killAt(t *testing.T, n int, args []string) ([]ptrace.Call, run, bool) {
	t.Helper()
	var calls []ptrace.Call
	r, killed := c.traced(t, args, func(call ptrace.Call) bool {
		calls = append(calls, call)
		return len(calls) == n
	}, nil)
	return calls, r, killed
}

// lastCalls lists the last calls of a command for a message. It was killed at
// the last one.
func lastCalls(c cluster, calls []ptrace.Call) string {
	const most = 12
	var list []string
	for i := max(0, len(calls)-most); i < len(calls); i++ {
		list = append(list, fmt.Sprintf("%4d %s", i+1, strings.ReplaceAll(calls[i].String(), c.dir+"/", "")))
	}
	return strings.Join(list, "\n")
}

// interruptPut leaves a temporary file of a killed put.
func (c cluster) interruptPut(t *testing.T) {
	t.Helper()
	r, killed := c.traced(t, []string{"put", "interrupted", "files/small-1"}, func(call ptrace.Call) bool {
		return call.Op == ptrace.OpRename || call.Op == ptrace.OpLink
	}, nil)
	if !killed {
		t.Fatalf("put did not come to storing its manifest: %v", r)
	}
}

// A killed get leaves what was there before or the whole object.
func TestKilledGet(t *testing.T) {
	t.Parallel()
	start := prepared(t, scenario{prepare: func(t *testing.T, c cluster) { c.put(t, "object", "large-1") }}, replicated())
	for n, faults := 1, 0; faults < maxFaults; n++ {
		c := start.copyTo(t, fmt.Sprintf("%s-%d", start.dir, n))
		out := filepath.Join(c.dir, "out")
		if err := os.WriteFile(out, contents()["small-2"], 0o600); err != nil {
			t.Fatal(err)
		}
		calls, r, killed := c.killAt(t, n, []string{"get", "object", out})
		allowed := versions{"large-1"}
		if killed {
			allowed = versions{"large-1", "small-2"}
		}
		if _, err := identify(out, allowed); err != nil {
			faults++
			t.Errorf("get, killed (%v) at call %d:\n%s\nthe file %v\n%v", killed, n, lastCalls(c, calls), err, r)
		}
		if err := os.RemoveAll(c.dir); err != nil {
			t.Fatal(err)
		}
		if !killed {
			t.Logf("%d calls", n-1)
			return
		}
	}
}
