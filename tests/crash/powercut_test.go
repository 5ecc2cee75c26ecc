//go:build linux && (amd64 || arm64)

package crash_test

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/crash/powercut"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

func TestPowerCutPut(t *testing.T)                { cutEverywhere(t, "Put") }
func TestPowerCutPutRecordedGarbage(t *testing.T) { cutEverywhere(t, "PutRecordedGarbage") }
func TestPowerCutOverwrite(t *testing.T)          { cutEverywhere(t, "Overwrite") }
func TestPowerCutRemove(t *testing.T)             { cutEverywhere(t, "Remove") }
func TestPowerCutRepair(t *testing.T)             { cutEverywhere(t, "Repair") }
func TestPowerCutAddRecoveryKey(t *testing.T)     { cutEverywhere(t, "AddRecoveryKey") }
func TestPowerCutCollectFirstRun(t *testing.T)    { cutEverywhere(t, "CollectFirstRun") }
func TestPowerCutCollectSecondRun(t *testing.T)   { cutEverywhere(t, "CollectSecondRun") }
func TestPowerCutCollectTombstones(t *testing.T)  { cutEverywhere(t, "CollectTombstones") }

// recording is a run of a command and what power cuts would have left of its
// cluster.
type recording struct {
	journal *powercut.Journal
	states  []powercut.State // different ones, from before the end
	final   []powercut.State // from after the end
	calls   map[[sha256.Size]byte]int
	count   int
	seen    map[[sha256.Size]byte]bool
}

// cutEverywhere runs a scenario's command once and verifies what a power cut
// would have left at each of its calls. It also holds the command to the
// order that makes writes last: nothing is renamed before it is synced, and
// when pcctl says that it is done, every directory has been synced.
func cutEverywhere(t *testing.T, name string) {
	t.Parallel()
	s := scenarios()[name]
	start := prepared(t, s, replicated())
	c := s.copyOf(t, start, start.dir+"-run")
	defer os.RemoveAll(c.dir)
	rec := record(t, c, name, s.args)
	checkOrder(t, c, rec.journal, strings.Join(s.args, " "))
	t.Logf("%d calls, %d different states", rec.count, len(rec.states))
	faults := verifyStates(t, c, name, rec, sample(rec.states), s.during)
	if faults < maxFaults {
		verifyStates(t, c, name, rec, rec.final, s.after)
	}
}

// checkOrder reports what a command that has ended well did in the wrong order
// or left unsynced.
func checkOrder(t *testing.T, c cluster, journal *powercut.Journal, command string) {
	t.Helper()
	for _, problem := range journal.Problems() {
		if strings.Contains(problem, "/config/catalog/") {
			continue // What a power cut spoils there is only read again.
		}
		t.Errorf("pcctl %s: %s", command, strings.ReplaceAll(problem, c.dir+"/", ""))
	}
	for _, path := range journal.Pending() {
		path = strings.TrimPrefix(path, c.dir+"/")
		if location, file, _ := strings.Cut(path, "/"); location != "config" && !strings.HasPrefix(file, "tmp") {
			t.Errorf("pcctl %s ended before the name %s was synced", command, path)
		}
	}
}

// verifyStates starts pcctl from each state and returns the number of faults.
func verifyStates(t *testing.T, start cluster, name string, rec *recording, states []powercut.State, own map[string]versions) int {
	t.Helper()
	faults := 0
	for i, state := range states {
		c := start
		c.dir = fmt.Sprintf("%s-%d", start.dir, i)
		if err := state.Write(c.dir); err != nil {
			t.Fatal(err)
		}
		before := c.tree()
		if err := c.verify(t, scenarios()[name], own); err != nil {
			faults++
			t.Errorf("%s, power cut at call %d of %d:\n%v\nThe power cut left:\n%s", name, rec.calls[state.Sum()], rec.count, err, before)
		}
		if err := os.RemoveAll(c.dir); err != nil {
			t.Fatal(err)
		}
		if faults == maxFaults {
			break
		}
	}
	return faults
}

// sample picks as many states as there is time for, evenly.
func sample(states []powercut.State) []powercut.State {
	const most = 40
	if len(states) <= most {
		return states
	}
	picked := make([]powercut.State, most)
	for i := range picked {
		picked[i] = states[i*len(states)/most]
	}
	return picked
}

// record runs a command and collects what power cuts would leave: at each
// call with all names lost that were not synced, with all of them kept, and
// with some of the directories' kept.
func record(t *testing.T, c cluster, name string, args []string) *recording {
	t.Helper()
	journal, err := powercut.New(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	rec := &recording{journal: journal, calls: map[[sha256.Size]byte]int{}, seen: map[[sha256.Size]byte]bool{}}
	seed := fnv.New64a()
	seed.Write([]byte(name))
	random := rand.New(rand.NewPCG(seed.Sum64(), 0))
	cut := func(list *[]powercut.State) {
		for _, keep := range []func(string) bool{
			func(string) bool { return false },
			func(string) bool { return true },
			func(dir string) bool { return strings.Contains(dir, "/manifest/") || strings.Contains(dir, "/record/") },
			func(string) bool { return random.IntN(2) == 0 },
		} {
			state := journal.Cut(keep)
			if sum := state.Sum(); !rec.seen[sum] {
				rec.seen[sum] = true
				rec.calls[sum] = rec.count
				*list = append(*list, state)
			}
		}
	}
	r, _ := c.traced(t, args, func(call ptrace.Call) bool {
		rec.count++
		journal.Enter(call)
		cut(&rec.states)
		return false
	}, journal.Exit)
	if r.status != 0 {
		t.Fatal(r)
	}
	clear(rec.seen) // what is left now must hold what the command has done
	cut(&rec.final)
	return rec
}
