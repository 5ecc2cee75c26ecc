package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/machine"
)

// memoryMiB is the machines' memory, the least that a node is supported with.
const memoryMiB = 1024

// moment is a point of a start that can be seen from outside.
type moment struct {
	name    string
	pattern *regexp.Regexp // on the serial port
}

// The moments' names.
const (
	momentInit   = "pcinit"
	momentBanner = "banner"
)

// moments are in the order in which they come.
func moments() []moment {
	return []moment{
		{momentInit, regexp.MustCompile(`pcinit begins`)},
		{momentBanner, regexp.MustCompile(`is waiting to be enrolled`)},
	}
}

// key says what was started, and on which machine.
type key struct {
	system string
	card   bool // whether it has a network card
}

// start is what was measured of one start, in fact of two: one for the time, and one
// for the instructions.
type start struct {
	// elapsed and instructions are from power-on to each moment, by its name.
	elapsed      map[string]time.Duration
	instructions map[string]uint64
	// memory is what the balloon tells at the banner; nil where the system has no
	// driver for it.
	memory *machine.Memory
	// counted is how much of what the kernel manages programs can't have at the banner,
	// in bytes, as pcd logs it.
	counted int64
}

// memoryLine is what pcd logs when it has shown its banner.
var memoryLine = regexp.MustCompile(`msg=memory svc=pcd total_kib=(\d+) available_kib=(\d+)\s`)

// logged reads memoryLine. The banner has been found; the line takes another way to the
// serial port and can be there before it.
func logged(ctx context.Context, console *machine.Console) (int64, error) {
	found := memoryLine.FindStringSubmatch(console.Text())
	if found == nil {
		var err error
		if found, err = console.Find(ctx, memoryLine); err != nil {
			return 0, err
		}
	}
	return inUse(found)
}

// inUse returns the bytes that a match of memoryLine has in use.
func inUse(found []string) (int64, error) {
	total, err := strconv.ParseInt(found[1], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the memory that pcd logs: %w", err)
	}
	available, err := strconv.ParseInt(found[2], 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the memory that pcd logs: %w", err)
	}
	return (total - available) << 10, nil
}

// results are the rounds of each measurement.
type results map[key][]start

// measureStarts starts everything, round by round, so that what changes on the host
// meanwhile touches all alike. It also returns what executes instructions where time
// is measured.
func measureStarts(ctx context.Context, opts options, systems []system, log func(string, ...any)) (results, string, error) {
	all := results{}
	accelerator, err := machine.Accelerator(ctx)
	if err != nil {
		return nil, "", err
	}
	for round := range opts.rounds {
		for _, card := range []bool{false, true} {
			for _, s := range figures.InTurn(systems, round) {
				log("round %d: %s, %s", round+1, s.name, network(card))
				one, err := measureStart(ctx, opts, s, card)
				if err != nil {
					return nil, "", fmt.Errorf("%s, %s: %w", s.name, network(card), err)
				}
				log("  banner after %.2f s and %.1f million instructions", one.elapsed[momentBanner].Seconds(), float64(one.instructions[momentBanner])/1e6)
				k := key{s.name, card}
				all[k] = append(all[k], one)
			}
		}
	}
	return all, accelerator, nil
}

func network(card bool) string {
	if card {
		return "with a network"
	}
	return "without a network"
}

// config is the machine that a system is started on.
func config(s system, card bool) machine.Config {
	c := machine.Config{
		Name:      s.name,
		MemoryMiB: memoryMiB,
		Disks:     []machine.Disk{{Image: s.disk}},
		Balloon:   true,
	}
	if card {
		c.Cards = []machine.Card{{}}
	}
	return c
}

// measureStart starts a system twice.
func measureStart(ctx context.Context, opts options, s system, card bool) (start, error) {
	one := start{elapsed: map[string]time.Duration{}, instructions: map[string]uint64{}}
	watch := func(c machine.Config, look func(context.Context, *machine.Observed) error) error {
		ctx, cancel := context.WithTimeoutCause(ctx, opts.patience, fmt.Errorf("%v were not enough", opts.patience))
		defer cancel()
		return machine.Observe(ctx, c, look)
	}
	timed := config(s, card)
	err := watch(timed, func(ctx context.Context, o *machine.Observed) error {
		for _, m := range moments() {
			if _, err := o.Console().Find(ctx, m.pattern); err != nil {
				return err
			}
			one.elapsed[m.name] = time.Since(o.Since())
		}
		if s.virtio {
			memory, err := o.Memory(ctx)
			if err != nil {
				return err
			}
			one.memory = &memory
		}
		var err error
		one.counted, err = logged(ctx, o.Console())
		return err
	})
	if err != nil {
		return one, err
	}
	counted := config(s, card)
	counted.CountInstructions = true
	return one, watch(counted, func(ctx context.Context, o *machine.Observed) error {
		for _, m := range moments() {
			if _, err := o.Console().Find(ctx, m.pattern); err != nil {
				return err
			}
			count, err := o.Instructions(ctx)
			if err != nil {
				return err
			}
			one.instructions[m.name] = count
		}
		return nil
	})
}
