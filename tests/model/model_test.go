package model

import (
	"os"
	"testing"

	"pgregory.net/rapid"
)

// run tests scripts of a flavor.
func run(t *testing.T, f flavor) {
	fixture := newFixture(t)
	rapid.Check(t, func(t *rapid.T) {
		s := scripts(f).Draw(t, "script")
		var failure error
		rapid.SyncTest(t, func(t *rapid.T) { failure = newWorld(fixture, s, t.Logf).play() })
		if failure != nil {
			t.Fatal(failure)
		}
	})
}

// open reports whether scripts are asked for which the model doesn't explain in all cases
// yet: those at erasure-coded sets, and those with the nodes' record of versions. About
// one in a thousand of the former ends in something unexplained, fewer of the latter.
func open() bool { return os.Getenv("MODEL_OPEN") != "" }

// runCoded tests scripts at erasure-coded sets, where that is asked for.
func runCoded(t *testing.T, f flavor) {
	if !open() {
		t.Skip("the model doesn't explain all that erasure-coded sets do yet; MODEL_OPEN=1 runs this")
	}
	f.coded = true
	run(t, f)
}

func TestFaults(t *testing.T) { run(t, flavor{faults: true, harms: true}) }
func TestLies(t *testing.T)   { run(t, flavor{lies: true, harms: true}) }
func TestAtOnce(t *testing.T) { run(t, flavor{suspends: true}) }
func TestAtOnceWithFaults(t *testing.T) {
	run(t, flavor{suspends: true, faults: true, lies: true, harms: true})
}
func TestCoded(t *testing.T) { runCoded(t, flavor{faults: true, lies: true, harms: true}) }
func TestCodedAtOnce(t *testing.T) {
	runCoded(t, flavor{suspends: true, faults: true, harms: true})
}
