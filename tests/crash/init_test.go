//go:build linux && (amd64 || arm64)

package crash_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/crash/powercut"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

// A killed init leaves locations that the next init initialises, or that are
// initialised with the passphrase that was given.
func TestKilledInit(t *testing.T)      { killInit(t, replicated(), 1) }
func TestKilledCodedInit(t *testing.T) { killInit(t, coded(), 13) }

// killInit kills init at its first call that changes the file system, and at every
// so many calls from there.
func killInit(t *testing.T, at places, stride int) {
	t.Parallel()
	top := scratch(t)
	for n, faults := 1, 0; faults < maxFaults; n += stride {
		c := emptyCluster(t, top, fmt.Sprint(n), at)
		calls, r, killed := c.killAt(t, n, []string{"init"})
		err := c.verifyInit(t)
		if err == nil && !killed && r.status != 0 {
			err = fmt.Errorf("it failed: %v", r)
		}
		if err != nil {
			faults++
			t.Errorf("killed (%v) at call %d of pcctl init:\n%s\n%v\n%s", killed, n, lastCalls(c, calls), err, c.tree())
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

// verifyInit tries to use a cluster whose init was interrupted.
func (c cluster) verifyInit(t *testing.T) error {
	t.Helper()
	r := c.pcctl(t, "init", "--json")
	switch {
	case r.status == 0:
		var result struct {
			RecoveryKey string `json:"recovery_key"`
		}
		if err := json.Unmarshal([]byte(r.stdout), &result); err != nil {
			return fmt.Errorf("init --json: %w\n%s", err, r.stdout)
		}
		c.recovery = result.RecoveryKey
	case r.status != 1 || !strings.Contains(r.stderr, "initiali"):
		return fmt.Errorf("the next init neither works nor says that the cluster is initialised: %v", r)
	}
	if r := c.pcctl(t, "repair"); r.status != 0 {
		return fmt.Errorf("it can't be opened: %v", r)
	}
	var first []byte
	for _, location := range c.directories {
		header, err := os.ReadFile(filepath.Join(c.dir, location, "header"))
		if err != nil {
			return fmt.Errorf("after repair: %w", err)
		}
		if first == nil {
			first = header
		}
		// The parts of a set hold a shard each.
		if c.data == 0 && !bytes.Equal(first, header) {
			return fmt.Errorf("after repair the headers of the locations differ")
		}
	}
	return nil
}

// When init has printed the recovery key, what it opens must survive a power
// cut.
func TestPowerCutAfterInit(t *testing.T) {
	t.Parallel()
	c := emptyCluster(t, scratch(t), "run", replicated())
	journal, err := powercut.New(c.dir)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := c.traced(t, []string{"init"}, func(call ptrace.Call) bool {
		journal.Enter(call)
		return false
	}, journal.Exit)
	if r.status != 0 {
		t.Fatal(r)
	}
	checkOrder(t, c, journal, "init")
	left := cluster{places: c.places, dir: c.dir + "-cut", files: c.files}
	if err := journal.Cut(func(string) bool { return false }).Write(left.dir); err != nil {
		t.Fatal(err)
	}
	if r := left.pcctl(t, "check"); r.status != 0 {
		t.Errorf("after a power cut: %v\n%s", r, left.tree())
	}
}
