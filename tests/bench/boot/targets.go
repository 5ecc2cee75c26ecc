package main

import (
	"fmt"
	"slices"
	"time"
)

// target is what a node's system should reach.
type target struct {
	What     string `json:"what"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// What a node's system may take.
const (
	largestEFI    = 16 << 20 // bytes
	largestMemory = 96 << 20 // bytes, on a machine of 1 GiB
	longestBuild  = 30 * time.Second
)

// targets compares what was measured with what is wanted. What was not measured is
// left out.
func (r report) targets() []target {
	var list []target
	for _, s := range r.sizes {
		if s.System == namePowerCloud {
			list = append(list, target{
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
			list = append(list, target{
				What:     fmt.Sprintf("memory in use at the banner, of %d MiB, %s", memoryMiB, network(card)),
				Wanted:   fmt.Sprintf("<= %s MiB", mebibytes(largestMemory)),
				Measured: mebibytes(own.used) + " MiB",
				Met:      own.used <= largestMemory,
			})
		}
	}
	if len(r.rebuilds) > 0 {
		took := middle(r.rebuilds)
		list = append(list, target{
			What:     "time from an edit of pcd to a new image",
			Wanted:   fmt.Sprintf("< %v", longestBuild),
			Measured: fmt.Sprintf("%.1fs", took.Seconds()),
			Met:      took < longestBuild,
		})
	}
	return list
}

// startTargets compares the systems where both do the same.
func (r report) startTargets() []target {
	own, ok := r.median(key{namePowerCloud, false})
	other, okOther := r.median(key{nameDebian, false})
	if !ok || !okOther {
		return nil
	}
	elapsed, limit := own.elapsed[momentBanner], other.elapsed[momentBanner]
	count, most := own.instructions[momentBanner], other.instructions[momentBanner]
	return []target{{
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
	// told is whether the system told of its memory. used is what programs can't
	// have of the machine's memory, and counted what they can't have of what the
	// kernel manages, in bytes.
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
		m.elapsed[one.name], m.instructions[one.name] = middle(elapsed), middle(instructions)
	}
	var used, counted []int64
	for _, s := range rounds {
		if s.memory != nil {
			used = append(used, memoryMiB<<20-int64(s.memory.Available))
			counted = append(counted, int64(s.memory.Total)-int64(s.memory.Available))
		}
	}
	if m.told = len(used) > 0; m.told {
		m.used, m.counted = middle(used), middle(counted)
	}
	return m, true
}

// middle returns the median of a list that isn't empty.
func middle[T ~int64 | ~uint64](list []T) T {
	list = slices.Clone(list)
	slices.Sort(list)
	half := len(list) / 2
	if len(list)%2 == 0 {
		return (list[half-1] + list[half]) / 2
	}
	return list[half]
}
