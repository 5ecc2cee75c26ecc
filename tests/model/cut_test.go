package model

import (
	"testing"
	"testing/synctest"
)

// playAll plays scripts one after the other.
func playAll(t *testing.T, scripts []script) {
	fixture := newFixture(t)
	for _, s := range scripts {
		synctest.Test(t, func(t *testing.T) {
			if err := newWorld(fixture, s, func(string, ...any) {}).play(); err != nil {
				t.Errorf("%v\n%#v", err, s)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// TestCutOff kills a command at every call to a location, and then loses a location.
func TestCutOff(t *testing.T) {
	var scripts []script
	for _, cut := range []step{{do: put, content: 3}, {do: remove}, {do: repairs, option: 1}, {do: collect}} {
		for stop := range 16 {
			for _, mask := range []places{0, 0b100, 0b011, 0b111} {
				for _, kind := range []harmKind{powerCut, wiped} {
					cut.stop, cut.mask = stop+1, mask
					scripts = append(scripts, script{members: plain(3), clients: make([]clientOptions, 2), steps: []step{
						{do: put, content: 2}, {do: put, object: 1, content: 4}, {do: put, object: 1, content: 1},
						{do: collect}, cut, {do: crash},
						{do: collect, client: 1}, {do: collect, client: 1},
						{do: harm, option: int(kind), place: 2}, {do: get, client: 1}, {do: ls, client: 1},
					}})
				}
			}
		}
	}
	playAll(t, scripts)
}

// TestOvertaken has collections run at every point of a write that counts on a chunk
// which nothing else uses.
func TestOvertaken(t *testing.T) {
	var scripts []script
	for stop := range 16 {
		for _, mask := range []places{0, 0b010} {
			for collections := range 4 {
				steps := []step{{do: put, content: 2}, {do: put, content: 3}, {do: put, object: 1, content: 2, stop: stop + 1, mask: mask}}
				for range collections {
					steps = append(steps, step{do: collect, client: 1})
				}
				steps = append(steps, step{do: proceed}, step{do: get, object: 1})
				scripts = append(scripts, script{members: plain(3), clients: make([]clientOptions, 2), steps: steps})
			}
		}
	}
	playAll(t, scripts)
}
