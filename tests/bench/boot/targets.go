package main

import (
	"fmt"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

// What a node's system may take.
const (
	largestEFI    = 16 << 20 // bytes
	largestMemory = 96 << 20 // bytes, on a machine of 1 GiB
	longestBuild  = 30 * time.Second
)

// targets compares what was measured with what is wanted. What was not measured is
// left out.
func (r report) targets() []figures.Target {
	var list []figures.Target
	for _, s := range r.sizes {
		if s.System == namePowerCloud {
			list = append(list, figures.Target{
				What:     "size of the EFI file",
				Wanted:   fmt.Sprintf("<= %s MiB", mebibytes(largestEFI)),
				Measured: mebibytes(s.EFI) + " MiB",
				Met:      s.EFI <= largestEFI,
			})
		}
	}
	list = append(list, r.startTargets()...)
	for _, card := range []bool{false, true} {
		if own, ok := r.median(key{namePowerCloud, card}); ok && own.told {
			list = append(list, figures.Target{
				What:     fmt.Sprintf("memory in use at the banner, of %d MiB, %s", memoryMiB, network(card)),
				Wanted:   fmt.Sprintf("<= %s MiB", mebibytes(largestMemory)),
				Measured: mebibytes(own.used) + " MiB",
				Met:      own.used <= largestMemory,
			})
		}
	}
	if len(r.rebuilds) > 0 {
		took := figures.Median(r.rebuilds)
		list = append(list, figures.Target{
			What:     "time from an edit of pcd to a new image",
			Wanted:   fmt.Sprintf("< %v", longestBuild),
			Measured: fmt.Sprintf("%.1fs", took.Seconds()),
			Met:      took < longestBuild,
		})
	}
	return list
}

// startTargets compares the systems where both do the same.
func (r report) startTargets() []figures.Target {
	own, ok := r.median(key{namePowerCloud, false})
	other, okOther := r.median(key{nameDebian, false})
	if !ok || !okOther {
		return nil
	}
	elapsed, limit := own.elapsed[momentBanner], other.elapsed[momentBanner]
	count, most := own.instructions[momentBanner], other.instructions[momentBanner]
	return []figures.Target{{
		What:     "time to the banner, " + network(false),
		Wanted:   fmt.Sprintf("< Debian's %.2fs", limit.Seconds()),
		Measured: fmt.Sprintf("%.2fs", elapsed.Seconds()),
		Met:      elapsed < limit,
	}, {
		What:     "instructions to the banner, " + network(false),
		Wanted:   fmt.Sprintf("< Debian's %s million", millions(most)),
		Measured: millions(count) + " million",
		Met:      count < most,
	}}
}

// medians are those of the rounds, each figure by itself.
type medians struct {
	elapsed      map[string]time.Duration
	instructions map[string]uint64
	// counted is what programs can't have of what the kernel manages, and used what
	// they can't have of the machine's memory, in bytes; told is whether the system
	// told of the latter.
	told          bool
	used, counted int64
}

func (r report) median(k key) (medians, bool) {
	rounds := r.results[k]
	if len(rounds) == 0 {
		return medians{}, false
	}
	m := medians{elapsed: map[string]time.Duration{}, instructions: map[string]uint64{}}
	for _, one := range moments() {
		var elapsed []time.Duration
		var instructions []uint64
		for _, s := range rounds {
			elapsed = append(elapsed, s.elapsed[one.name])
			instructions = append(instructions, s.instructions[one.name])
		}
		m.elapsed[one.name], m.instructions[one.name] = figures.Median(elapsed), figures.Median(instructions)
	}
	var used, counted []int64
	for _, s := range rounds {
		if s.memory != nil {
			used = append(used, memoryMiB<<20-int64(s.memory.Available))
		}
		counted = append(counted, s.counted)
	}
	m.counted = figures.Median(counted)
	if m.told = len(used) > 0; m.told {
		m.used = figures.Median(used)
	}
	return m, true
}
