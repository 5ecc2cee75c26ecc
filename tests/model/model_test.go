package model

import (
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

func TestFaults(t *testing.T) { run(t, flavor{faults: true, harms: true}) }
func TestLies(t *testing.T)   { run(t, flavor{lies: true, harms: true}) }
func TestAtOnce(t *testing.T) { run(t, flavor{suspends: true}) }
func TestAtOnceWithFaults(t *testing.T) {
	run(t, flavor{suspends: true, faults: true, lies: true, harms: true})
}
func TestCoded(t *testing.T) { run(t, flavor{coded: true, faults: true, lies: true, harms: true}) }
func TestCodedAtOnce(t *testing.T) {
	run(t, flavor{coded: true, suspends: true, faults: true, harms: true})
}
