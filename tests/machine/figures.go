package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Instructions is how many instructions the machine has executed since it was
// switched on, its firmware's among them, for a machine with
// Config.CountInstructions. An idle processor executes none. The machine is
// stopped for the answer, and goes on afterwards.
func (o *Observed) Instructions(ctx context.Context) (uint64, error) {
	if !o.config.CountInstructions {
		return 0, fmt.Errorf("nobody counts the instructions of %s", o.config.Name)
	}
	// While it runs, QEMU knows only how many there were when it last looked.
	if err := o.on.monitor.Execute(ctx, "stop", nil, nil); err != nil {
		return 0, err
	}
	// What QEMU could replay it counts as well where it records nothing.
	var answer struct {
		Count uint64 `json:"icount"`
	}
	if err := o.on.monitor.Execute(ctx, "query-replay", nil, &answer); err != nil {
		return 0, err
	}
	return answer.Count, o.on.monitor.Execute(ctx, "cont", nil, nil)
}

// Memory is a machine's memory as its system sees it.
type Memory struct {
	// Total is what the system manages, MemTotal of Linux's /proc/meminfo, in
	// bytes. What firmware and kernel set aside for themselves isn't in it.
	Total uint64
	// Available is what programs could still take, MemAvailable, in bytes.
	Available uint64
}

const (
	balloonName = "balloon"
	balloonPath = "/machine/peripheral/" + balloonName
	// balloonInterval is how often QEMU asks the system, in seconds; it is the
	// shortest.
	balloonInterval = 1
	// balloonLook is how often to look for an answer.
	balloonLook = 50 * time.Millisecond
)

// Memory asks the system of a machine with Config.Balloon how much memory there
// is, and waits for its answer. A system without a driver for the balloon gives
// none.
func (o *Observed) Memory(ctx context.Context) (Memory, error) {
	if !o.config.Balloon {
		return Memory{}, fmt.Errorf("%s has no memory balloon", o.config.Name)
	}
	// The driver has told when it started, which is too old.
	before, err := o.balloon(ctx)
	if err != nil {
		return Memory{}, err
	}
	// A question when the interval is set, and then one after each.
	err = o.on.monitor.Execute(ctx, "qom-set", map[string]any{
		"path": balloonPath, "property": "guest-stats-polling-interval", "value": balloonInterval}, nil)
	if err != nil {
		return Memory{}, err
	}
	ticker := time.NewTicker(balloonLook)
	defer ticker.Stop()
	for {
		after, err := o.balloon(ctx)
		if err != nil {
			return Memory{}, err
		}
		if after.Updated != before.Updated {
			return after.memory()
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return Memory{}, fmt.Errorf("wait until the system of %s tells of its memory: %w", o.config.Name, context.Cause(ctx))
		}
	}
}

// balloonStatistics is what QEMU knows of a system by its balloon.
type balloonStatistics struct {
	// Updated is when the system told it, in seconds of Unix time, or 0.
	Updated int64 `json:"last-update"`
	// Values are in bytes. What the system didn't tell is the largest number
	// that there is.
	Values struct {
		Total     uint64 `json:"stat-total-memory"`
		Available uint64 `json:"stat-available-memory"`
	} `json:"stats"`
}

func (o *Observed) balloon(ctx context.Context) (balloonStatistics, error) {
	var s balloonStatistics
	err := o.on.monitor.Execute(ctx, "qom-get", map[string]any{"path": balloonPath, "property": "guest-stats"}, &s)
	return s, err
}

// memory checks what a system has told.
func (s balloonStatistics) memory() (Memory, error) {
	m := Memory{Total: s.Values.Total, Available: s.Values.Available}
	if m.Total == math.MaxUint64 || m.Available == math.MaxUint64 {
		return Memory{}, errors.New("the system's driver for the balloon doesn't tell how much memory there is")
	}
	if m.Available > m.Total {
		return Memory{}, fmt.Errorf("the system says that of %d bytes of memory %d are available", m.Total, m.Available)
	}
	return m, nil
}
