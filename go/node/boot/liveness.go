package boot

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"powercloud.unidatum.com/go/sys/watchdog"
)

// liveness knows which parts of PID 1 must be getting on, and since when each
// hasn't. The watchdog is fed only while all of them are, so that a part that
// hangs has the machine reset, though others still run.
type liveness struct {
	now func() time.Time

	mu    sync.Mutex
	parts map[string]due
}

// due is until when a part must have been heard of.
type due struct {
	limit time.Duration
	at    time.Time
}

func newLiveness() *liveness {
	return &liveness{now: time.Now, parts: map[string]due{}}
}

// expect says that a part will be heard of again within limit.
func (l *liveness) expect(part string, limit time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.parts[part] = due{limit: limit, at: l.now().Add(limit)}
}

// done says that a part has nothing left to do.
func (l *liveness) done(part string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.parts, part)
}

// late returns an error that names a part which should have been heard of.
func (l *liveness) late() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for part, d := range l.parts {
		if l.now().After(d.at) {
			return fmt.Errorf("%s hasn't got on for %v", part, d.limit)
		}
	}
	return nil
}

// device is a watchdog that runs.
type device interface {
	Ping() error
	Timeout() time.Duration
	Disarm() error
}

// guard is a watchdog that runs, and what its driver calls it.
type guard struct {
	device
	identity string
}

// feed feeds a watchdog until ctx is done, or until a part is late: from then on
// the machine has the rest of the watchdog's timeout.
func (l *liveness) feed(ctx context.Context, g guard, log *slog.Logger) {
	log = log.With("watchdog", g.identity)
	ticker := time.NewTicker(max(g.Timeout()/4, time.Millisecond))
	defer ticker.Stop()
	starving := false
	for {
		if err := l.late(); err != nil {
			if !starving {
				log.Error("the watchdog isn't fed any more and will reset the machine", "err", err)
			}
			starving = true
		} else {
			starving = false
			if err := g.Ping(); err != nil {
				log.Warn("the watchdog can't be fed", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// opener starts a watchdog.
type opener func(path string, timeout time.Duration) (device, error)

func openDevice(path string, timeout time.Duration) (device, error) {
	return watchdog.Open(path, timeout)
}

// openWatchdogs starts the best hardware watchdog that can be had, takes over every
// other that runs already, and starts the kernel's own beside them. A firmware may have
// started what runs, and the kernel feeds it for some minutes only. The kernel's own is
// for hardware that takes all that it is told and never resets the machine: nothing
// tells such a watchdog from a good one.
func openWatchdogs(m Machine, open opener, log *slog.Logger) []guard {
	found, err := watchdog.Find(m.WatchdogClass)
	if err != nil {
		log.Warn("nothing resets this machine when it freezes", "err", err)
		return nil
	}
	var opened []guard
	for _, f := range found {
		if f.CausedReset {
			log.Warn("the watchdog had to reset the machine", "watchdog", f.Identity)
		}
		if len(opened) > 0 && !f.Running && !f.Software {
			continue
		}
		timeout := m.Timing.Watchdog
		if f.Software {
			timeout = before(opened, timeout)
		}
		w, err := open(m.Devices+"/"+f.Name, timeout)
		if err != nil {
			log.Warn("a watchdog can't be used", "watchdog", f.Identity, "err", err)
			continue
		}
		log.Info("the watchdog runs", "watchdog", f.Identity, "software", f.Software, "timeout", w.Timeout())
		opened = append(opened, guard{w, f.Identity})
	}
	if len(opened) == 0 {
		log.Warn("nothing resets this machine when it freezes")
	}
	return opened
}

// before is the timeout of the kernel's own watchdog beside those of hardware: three
// quarters of the shortest, and limit where there are none. So the kernel, as long as it
// runs, has the first word, and says on the consoles what resets the machine. Hardware
// has the last one, for a kernel that doesn't run, or can't reset the machine.
func before(hardware []guard, limit time.Duration) time.Duration {
	for _, g := range hardware {
		limit = min(limit, g.Timeout()*3/4)
	}
	return limit
}
