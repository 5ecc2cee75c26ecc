package clock

import "time"

// pacing says when the next round begins while the time isn't known. A round that
// failed is followed by another after a pause, which doubles from one to the next. A
// change of the network brings it forward: the cable may just have been plugged in.
//
// A network that changes all the time, by a fault or because a stranger announces
// something ever new, must not have the servers asked without limit: from one change
// to the next the time until the round doubles as well, up to the longest pause. Only
// once the network was quiet for the longest pause does the next change count as the
// first.
type pacing struct {
	// pause is how long the next round waits when nothing changes, haste how long
	// after a change.
	pause, haste time.Duration
}

func newPacing() *pacing { return &pacing{pause: firstPause, haste: firstHaste} }

// failed is called after a round that failed. It returns how long the next one waits
// unless something changes.
func (p *pacing) failed() (wait time.Duration) {
	wait, p.pause = p.pause, min(2*p.pause, longestPause)
	return wait
}

// changed is called when the network has changed. It returns how long the next round
// waits.
func (p *pacing) changed() (wait time.Duration) {
	if p.haste == firstHaste {
		p.pause = firstPause
	}
	wait, p.haste = p.haste, min(2*p.haste, longestPause)
	return wait
}

// quiet is called when nothing has changed for some time.
func (p *pacing) quiet(wait time.Duration) {
	if wait >= longestPause {
		p.haste = firstHaste
	}
}
