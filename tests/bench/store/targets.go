package main

import (
	"fmt"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

// goal is a target before it is compared: how many times faster pcctl should be
// than another tool.
type goal struct {
	workload, operation, peer string
	factor                    float64
}

func goals() []goal {
	list := []goal{
		{"file", "put", nameCeiling, 0.85},
		{"file", "put", nameKopia, 1.7},
		{"file", "put", nameRestic, 2.2},
		{"file", "get", nameRclone, 1},
		{"file", "verify", nameRestic, 2},
		{"tree", "put", nameKopia, 1},
		{"ec-file", opPut, namePlain, 1 / 1.5},
	}
	// In these, faster than each of the others in every row.
	for _, name := range []string{"s3-file", "s3-tree", "ec-file", "list"} {
		for _, op := range workloadNamed(name).operations() {
			for _, peer := range []string{nameRestic, nameKopia, nameRclone} {
				list = append(list, goal{name, op, peer, 1})
			}
		}
	}
	return list
}

// What pcctl may take for a listing: time for as many objects as list has by
// default, and memory beyond Argon2id's for any number.
const (
	coldListing   = 10 * time.Second
	warmListing   = time.Second
	listingMemory = 256 << 20
)

// memoryMargin is what pcctl may take beyond Argon2id's own memory.
const memoryMargin = 64 << 20

// targets compares what was measured with the goals. What was not measured is
// left out.
func (r report) targets() []figures.Target {
	var list []figures.Target
	for _, t := range r.tables() {
		for _, g := range goals() {
			// The second tool shows what is not Argon2id's share.
			for _, tool := range []string{namePCCtl, nameRecovery} {
				if target, ok := r.compare(t, g, tool); ok {
					list = append(list, target)
				}
			}
		}
		switch {
		case t.of().listed:
			list = append(list, r.listingTargets(t)...)
		case !t.of().buckets && !t.of().erasure:
			list = append(list, r.memoryTargets(t)...)
		}
	}
	return list
}

// compare holds one tool to a goal, if both sides were measured.
func (r report) compare(t table, g goal, tool string) (figures.Target, bool) {
	own, ok := r.median(t.key(tool, g.operation))
	peer, okPeer := r.median(t.key(g.peer, g.operation))
	if g.workload != t.workload || !ok || !okPeer {
		return figures.Target{}, false
	}
	speed := peer.wall.Seconds() / own.wall.Seconds()
	return figures.Target{
		What:     fmt.Sprintf("%s: %s, speed of %s against %s", r.describe(t), g.operation, tool, g.peer),
		Wanted:   fmt.Sprintf(">= %.2f", g.factor),
		Measured: fmt.Sprintf("%.2f", speed),
		Met:      speed >= g.factor,
	}, true
}

func (r report) memoryTargets(t table) []figures.Target {
	var list []figures.Target
	argon, ok := r.median(t.key(nameArgon, "put"))
	if !ok {
		return nil
	}
	for _, op := range t.of().operations() {
		own, ok := r.median(t.key(namePCCtl, op))
		if !ok {
			continue
		}
		list = append(list, figures.Target{
			What:     fmt.Sprintf("%s: peak memory of %s", r.describe(t), op),
			Wanted:   fmt.Sprintf("<= %d MiB", (argon.peak+memoryMargin)>>20),
			Measured: fmt.Sprintf("%d MiB", own.peak>>20),
			Met:      own.peak <= argon.peak+memoryMargin,
		})
	}
	return list
}

// listingTargets holds listings to their time and memory. What Argon2id takes of
// the memory is missing where the recovery key unlocks.
func (r report) listingTargets(t table) []figures.Target {
	var list []figures.Target
	limits := map[string]time.Duration{opCold: coldListing, opWarm: warmListing}
	for _, op := range t.of().operations() {
		limit, ok := limits[op]
		own, measured := r.median(t.key(namePCCtl, op))
		if ok && measured && !t.of().alone {
			list = append(list, figures.Target{
				What:     fmt.Sprintf("%s: %s", r.describe(t), op),
				Wanted:   fmt.Sprintf("<= %v", limit),
				Measured: fmt.Sprintf("%.2fs", own.wall.Seconds()),
				Met:      own.wall <= limit,
			})
		}
		if own, measured = r.median(t.key(nameRecovery, op)); measured {
			list = append(list, figures.Target{
				What:     fmt.Sprintf("%s: peak memory of %s without Argon2id", r.describe(t), op),
				Wanted:   fmt.Sprintf("<= %d MiB", listingMemory>>20),
				Measured: fmt.Sprintf("%d MiB", own.peak>>20),
				Met:      own.peak <= listingMemory,
			})
		}
	}
	return list
}
