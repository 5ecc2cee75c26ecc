package model

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// action is what one step of a script does.
type action int

// The actions. Those up to bury are commands of a client; the next ones are about
// the command that a client has under way, and the last about locations and time.
const (
	put action = iota
	remove
	get
	stat
	ls
	check
	repairs
	collect
	bury // gc --tombstones
	proceed
	crash
	cancel
	fault
	heal
	harm
	snapshot
	wait
)

var actionWords = [...]string{
	"put", "rm", "get", "stat", "ls", "check", "repair", "gc", "gc --tombstones", "proceed", "crash", "cancel",
	"fault", "heal", "harm", "snapshot", "wait",
}

func (a action) String() string { return actionWords[a] }

// command reports whether the action is a command of a client.
func (a action) command() bool { return a <= bury }

// writes reports whether a command may change what locations hold.
func (a action) writes() bool {
	return a == put || a == remove || a == repairs || a == collect || a == bury
}

// step is one step of a script. Which fields matter depends on the action.
type step struct {
	do action
	// client, object, content and place are indices.
	client, object, content, place int
	// option is the kind of a fault or harm, the grace period of gc, how long
	// to wait, or whether check verifies.
	option int
	// fresh has a client begin anew, as another run of pcctl does.
	fresh bool
	// stop is after how many rounds of calls to locations the command is left
	// suspended, or 0. Of the calls that it then has under way, those at the
	// locations of the mask are done.
	stop int
	mask places
}

// alone reports whether a command compares locations, and so waits for all of them.
func (s step) alone() bool {
	return s.do == check || s.do == repairs || s.do == collect || s.do == bury
}

// dry reports whether it is a gc that only tells what it would do.
func (s step) dry() bool { return (s.do == collect || s.do == bury) && s.content > 0 }

// String describes a step in a line.
func (s step) String() string {
	var b strings.Builder
	if s.do <= cancel {
		fmt.Fprintf(&b, "client %d: %s", s.client, s.do)
	} else {
		b.WriteString(s.do.String())
	}
	switch s.do {
	case put:
		fmt.Fprintf(&b, " %s, content %d", objectNames[s.object], s.content)
	case remove, get, stat:
		fmt.Fprintf(&b, " %s", objectNames[s.object])
	case ls:
		fmt.Fprintf(&b, " %q", prefixes[s.option])
	case check, repairs:
		if s.option > 0 {
			b.WriteString(" --verify")
		}
	case collect, bury:
		fmt.Fprintf(&b, " --grace %s", graces[s.option])
		if s.dry() {
			b.WriteString(" --dry-run")
		}
	case fault:
		fmt.Fprintf(&b, " %s at %s", faultKind(s.option), placeName(s.place))
	case harm:
		fmt.Fprintf(&b, " %s at %s", harmKind(s.option), placeName(s.place))
	case heal, snapshot:
		fmt.Fprintf(&b, " %s", placeName(s.place))
	case wait:
		fmt.Fprintf(&b, " %s", waits[s.option])
	}
	if s.fresh {
		b.WriteString(", as a new process")
	}
	if s.stop > 0 {
		fmt.Fprintf(&b, ", suspended after %d rounds and the calls at %s", s.stop, s.mask)
	}
	if s.do == crash || s.do == cancel {
		fmt.Fprintf(&b, " with the calls at %s", s.mask)
	}
	return b.String()
}

var (
	objectNames = []string{"a", "b/x", "b/y"}
	prefixes    = []string{"", "b/"}
	graces      = []time.Duration{0, time.Hour, 24 * time.Hour}
	waits       = []time.Duration{time.Second, 30 * time.Minute, 25 * time.Hour}
	skews       = []time.Duration{0, -5 * time.Second, 5 * time.Second, time.Hour, -time.Hour}
)

// script is a whole sequence: which locations and clients there are, and what
// happens.
type script struct {
	members []layout
	clients []clientOptions
	// seed decides what is of no importance, such as nonces.
	seed uint64
	// large is set when an object may have several chunks, guarded when the nodes
	// record which versions there are.
	large, guarded bool
	steps          []step
}

// clientOptions says how a client calls pcctl.
type clientOptions struct {
	// quorum is its --quorum, or 0.
	quorum int
	// skew is how far its clock is ahead.
	skew time.Duration
	// catalog is set when it keeps a catalog between its commands.
	catalog bool
}

// skewed reports whether the clients' clocks differ.
func (s script) skewed() bool {
	for _, c := range s.clients {
		if c.skew != s.clients[0].skew {
			return true
		}
	}
	return false
}

// GoString describes a script line by line; rapid prints it so.
func (s script) GoString() string {
	var b strings.Builder
	fmt.Fprintf(&b, "locations of (data, parts) %v, seed %d, guarded %t\n", s.members, s.seed, s.guarded)
	for i, c := range s.clients {
		fmt.Fprintf(&b, "  client %d: quorum %d, clock %s ahead, catalog %t\n", i, c.quorum, c.skew, c.catalog)
	}
	for i, step := range s.steps {
		fmt.Fprintf(&b, "  %2d %s\n", i, step)
	}
	return b.String()
}

// places returns how many places the locations consist of.
func (s script) places() int {
	n := 0
	for _, l := range s.members {
		n += l.total
	}
	return n
}

// flavor says what may happen in a script. Each has only some of the troubles:
// with all of them at once, nothing is promised any more soon, and nothing tested.
type flavor struct {
	faults, lies, harms, suspends bool
	// coded has erasure-coded sets among the locations.
	coded bool
}

// scripts returns the generator of scripts.
func scripts(f flavor) *rapid.Generator[script] {
	return rapid.Custom(func(t *rapid.T) script {
		s := script{
			members: rapid.SampledFrom(f.layouts()).Draw(t, "locations"),
			seed:    rapid.Uint64Range(0, 1<<16).Draw(t, "seed"),
		}
		s.large = rapid.IntRange(0, 31).Draw(t, "large") == 20
		s.guarded = rapid.IntRange(0, 7).Draw(t, "guarded") == 6
		clients := rapid.IntRange(1, 3).Draw(t, "clients")
		unequal := rapid.IntRange(0, 9).Draw(t, "unequal")
		for range clients {
			var c clientOptions
			if unequal == 9 || unequal == 8 {
				c.quorum = rapid.IntRange(0, len(s.members)).Draw(t, "quorum")
			}
			if unequal == 9 || unequal == 7 {
				c.skew = rapid.SampledFrom(skews).Draw(t, "skew")
			}
			c.catalog = unequal == 6
			s.clients = append(s.clients, c)
		}
		s.steps = rapid.SliceOfN(steps(f, s), 1, 40).Draw(t, "steps")
		return s
	})
}

// layouts returns what the locations may be.
func (f flavor) layouts() [][]layout {
	if f.coded {
		return coded()
	}
	var layouts [][]layout
	for _, n := range []int{3, 2, 3, 1, 4, 5} {
		layouts = append(layouts, plain(n))
	}
	return layouts
}

// weights returns each action as often as it is to occur.
func (f flavor) weights() []action {
	weights := map[action]int{put: 10, get: 4, remove: 3, stat: 1, ls: 2, check: 1, repairs: 3, collect: 5, bury: 3, wait: 2}
	order := []action{put, get, remove, collect, repairs, bury, ls, check, stat, wait}
	add := func(weight int, actions ...action) {
		for _, a := range actions {
			weights[a] = weight
			order = append(order, a)
		}
	}
	if f.suspends {
		add(4, proceed)
		add(2, crash)
		add(1, cancel)
	}
	if f.faults || f.lies {
		add(5, fault, heal)
	}
	if f.harms {
		add(3, harm)
		add(1, snapshot)
	}
	var all []action
	for _, a := range order {
		for range weights[a] {
			all = append(all, a)
		}
	}
	return all
}

// steps returns the generator of a script's steps.
func steps(f flavor, s script) *rapid.Generator[step] {
	weights := f.weights()
	return rapid.Custom(func(t *rapid.T) step {
		st := step{do: rapid.SampledFrom(weights).Draw(t, "action")}
		below := func(n int, label string) int { return rapid.IntRange(0, n-1).Draw(t, label) }
		if st.do <= cancel {
			st.client = below(len(s.clients), "client")
		} else if st.do != wait {
			st.place = below(s.places(), "location")
		}
		switch st.do {
		case put:
			st.object, st.content = below(len(objectNames), "object"), below(contents, "content")
			if st.content == largeContent && !s.large {
				st.content = 1
			}
		case remove, get, stat:
			st.object = below(len(objectNames), "object")
		case ls:
			st.option = below(len(prefixes), "prefix")
		case check, repairs:
			st.option = below(2, "verify")
		case collect, bury:
			st.option = below(len(graces), "grace")
			st.content = below(8, "dry run") / 7
		case fault:
			st.option = int(rapid.SampledFrom(f.faultKinds()).Draw(t, "fault"))
		case harm:
			st.option = below(int(harmKinds), "harm")
		case wait:
			st.option = below(len(waits), "wait")
		}
		if st.do.command() {
			st.fresh = below(8, "fresh") == 7
		}
		if st.do.command() && f.suspends && rapid.Bool().Draw(t, "suspend") {
			st.stop = rapid.IntRange(1, 16).Draw(t, "rounds")
		}
		if st.stop > 0 || st.do == crash || st.do == cancel {
			st.mask = places(below(1<<s.places(), "mask"))
		}
		return st
	})
}

// faultKinds returns the faults that may occur.
func (f flavor) faultKinds() []faultKind {
	var kinds []faultKind
	for k := range faultKinds {
		if k == forging && !f.coded {
			continue
		}
		if k.lie() && f.lies || !k.lie() && f.faults {
			kinds = append(kinds, k)
		}
	}
	return kinds
}
