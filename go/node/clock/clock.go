// Package clock keeps a node's clock right: certificates and signatures depend
// on it. It asks the time servers that DHCP has named, or else a pool that the
// build names, takes what a majority agrees on, sets the clock when the node
// starts and corrects it gently afterwards.
//
// # What this can't do
//
// NTP's answers aren't authentic. Who controls the network between a node and
// its time servers controls what a majority says. Two bounds hold whatever they
// say: the clock is never set to before the node's software was built, nor to
// more than twenty years after. Within them a lie can make certificates look
// expired, or not yet expired. A Source that is authentic (NTS, a cloud's own
// clock, another node) can be added beside NTP: the majority is taken over the
// answers, wherever they come from.
package clock

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// startStep is the offset above which the clock is set when the node starts.
	startStep = 50 * time.Millisecond
	// laterStep is the offset above which correcting gently would take too long:
	// more than five hours. The clock is then set, once confirmations rounds in
	// a row have said the same. A virtual machine that was paused is the case.
	laterStep     = 10 * time.Second
	confirmations = 3
	// sameOffset is how far the offsets of such rounds may differ.
	sameOffset = 2 * time.Second

	// firstPause and longestPause bound the waits while the time isn't known.
	firstPause   = 2 * time.Second
	longestPause = 64 * time.Second
	// firstHaste is how soon after a change of the network another round begins then,
	// at first. See pacing.
	firstHaste = 250 * time.Millisecond
	// quickPoll is the pause between the first quickRounds rounds after that,
	// slowPoll between the others.
	quickPoll   = 64 * time.Second
	quickRounds = 8
	slowPoll    = 512 * time.Second

	// maxServers is how many servers are asked in one round.
	maxServers = 8
	// roundTimeout is how long a round may take.
	roundTimeout = 15 * time.Second
	// latest is how long after its build a node's clock can be right.
	latest = 20 * 365 * 24 * time.Hour
)

// Clock is the clock that is kept; package go/sys/clock has the machine's.
type Clock interface {
	Now() time.Time
	// Step sets the clock forward by an offset at once.
	Step(offset time.Duration) error
	// Slew corrects the clock by an offset without a jump.
	Slew(offset, poll, maxError time.Duration) error
}

// Config is what a Keeper works with.
type Config struct {
	Clock Clock
	// Build is when the node's software was built.
	Build time.Time
	// Servers returns the time servers that the network has named, and a channel
	// that is closed when that may have changed.
	Servers func() (servers []string, changed <-chan struct{})
	// Pool are the servers to ask where the network names none, or none that
	// answers.
	Pool []string
	// Query asks one server; NTP when nil.
	Query func(ctx context.Context, server string) (Measurement, error)
	Log   *slog.Logger
	// After waits; time.After when nil.
	After func(time.Duration) <-chan time.Time
}

// Keeper keeps the clock. Create one with New; Run does the work.
type Keeper struct {
	config Config
	synced chan struct{}
	once   sync.Once

	// pending are the large offsets that rounds in a row have found.
	pending []time.Duration
	rounds  int
	// told is the reason, as gist returns it, that the log has for the time not
	// being known.
	told string
}

// New returns a Keeper that hasn't begun.
func New(config Config) *Keeper {
	if config.Query == nil {
		config.Query = queryNTP
	}
	if config.After == nil {
		config.After = time.After
	}
	return &Keeper{config: config, synced: make(chan struct{})}
}

// Synced is closed once the clock has been set by a majority of time servers.
func (k *Keeper) Synced() <-chan struct{} { return k.synced }

// isSynced tells whether Synced is closed.
func (k *Keeper) isSynced() bool {
	select {
	case <-k.synced:
		return true
	default:
		return false
	}
}

// Run keeps the clock until ctx is done.
func (k *Keeper) Run(ctx context.Context) error {
	if err := k.notBeforeBuild(); err != nil {
		return err
	}
	pace := newPacing()
	for {
		servers, changed := k.config.Servers()
		err := k.round(ctx, servers)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var wait time.Duration
		switch {
		case err != nil && !k.isSynced():
			k.tellUnknown(err)
			wait = pace.failed()
		case err != nil:
			k.config.Log.Warn("the clock wasn't checked", "err", err)
			wait = k.poll()
		default:
			wait = k.poll()
		}
		if k.isSynced() {
			// New servers can wait for the next round.
			changed = nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
			if err := k.rest(ctx, pace.changed()); err != nil {
				return err
			}
		case <-k.config.After(wait):
			pace.quiet(wait)
		}
	}
}

// rest waits.
func (k *Keeper) rest(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-k.config.After(wait):
		return nil
	}
}

// tellUnknown says that the time isn't known, and why, unless that was said of the
// round before: while the network comes up there are several a second.
func (k *Keeper) tellUnknown(err error) {
	if reason := gist(err); reason != k.told {
		k.told = reason
		k.config.Log.Info("the time isn't known yet", "err", err)
	}
}

// gist returns what an error says without what may differ from one try to the next:
// ports, addresses, and how many more there are.
func gist(err error) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune("0123456789abcdef", r) {
			return -1
		}
		return r
	}, err.Error())
}

// poll is the pause until the next round once the time is known.
func (k *Keeper) poll() time.Duration {
	if k.rounds < quickRounds || len(k.pending) > 0 {
		return quickPoll
	}
	return slowPoll
}

// notBeforeBuild sets a clock that can't be right to the software's date.
func (k *Keeper) notBeforeBuild() error {
	early := k.config.Build.Sub(k.config.Clock.Now())
	if early <= 0 {
		return nil
	}
	k.config.Log.Warn("the clock is before this software's date, and is set to it", "date", k.config.Build)
	return k.config.Clock.Step(early)
}

// round asks the servers once, and corrects the clock by what they say.
func (k *Keeper) round(ctx context.Context, named []string) error {
	best, err := k.measure(ctx, named)
	if err != nil {
		fromPool, poolErr := k.measure(ctx, k.config.Pool)
		if poolErr != nil {
			if len(named) == 0 {
				return poolErr
			}
			return fmt.Errorf("the network's servers: %w; the pool: %w", err, poolErr)
		}
		best = fromPool
	}
	return k.correct(best)
}

// measure asks servers, all at once, and takes what a majority says.
func (k *Keeper) measure(ctx context.Context, servers []string) (Measurement, error) {
	ctx, cancel := context.WithTimeout(ctx, roundTimeout)
	defer cancel()
	servers = servers[:min(len(servers), maxServers)]
	answers := make([]Measurement, len(servers))
	failures := make([]error, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		asking.Go(func() {
			answers[i], failures[i] = k.config.Query(ctx, server)
			if failures[i] == nil {
				failures[i] = k.possible(answers[i])
			}
		})
	}
	asking.Wait()
	var good []Measurement
	for i, err := range failures {
		if err == nil {
			good = append(good, answers[i])
		}
	}
	best, wrong, err := choose(good)
	for _, m := range wrong {
		k.config.Log.Warn("a time server disagrees", "server", m.Source, "offset", m.Offset, "err", m.Error)
	}
	if err != nil {
		return Measurement{}, because(err, failures)
	}
	return best, nil
}

// because adds to an error the first of its reasons, and says how many there
// are: one line is enough to see what is wrong.
func because(err error, reasons []error) error {
	reasons = slices.DeleteFunc(reasons, func(e error) bool { return e == nil })
	switch len(reasons) {
	case 0:
		return err
	case 1:
		return fmt.Errorf("%w: %w", err, reasons[0])
	}
	return fmt.Errorf("%w: %w, and %d more", err, reasons[0], len(reasons)-1)
}

// possible refuses what no node's clock can be.
func (k *Keeper) possible(m Measurement) error {
	t := k.config.Clock.Now().Add(m.Offset)
	if t.Before(k.config.Build) || t.After(k.config.Build.Add(latest)) {
		return fmt.Errorf("the time server %s says that it is %s, which can't be", m.Source, t.UTC().Format(time.RFC3339))
	}
	return nil
}

// correct brings the clock to where a measurement says.
func (k *Keeper) correct(m Measurement) error {
	if !k.isSynced() {
		return k.first(m)
	}
	if m.Offset.Abs() > laterStep {
		return k.leap(m)
	}
	k.pending = nil
	k.rounds++
	return k.config.Clock.Slew(m.Offset, k.poll(), m.Error)
}

// first sets the clock when the node starts.
func (k *Keeper) first(m Measurement) error {
	rest := m.Offset
	if m.Offset.Abs() > startStep {
		if err := k.config.Clock.Step(m.Offset); err != nil {
			return err
		}
		rest = 0
	}
	if err := k.config.Clock.Slew(rest, quickPoll, m.Error); err != nil {
		return err
	}
	k.config.Log.Info("the clock is right", "server", m.Source, "offset", m.Offset, "err", m.Error)
	k.once.Do(func() { close(k.synced) })
	return nil
}

// leap sets the clock when it is far off though it was right before, once
// several rounds have said the same.
func (k *Keeper) leap(m Measurement) error {
	if len(k.pending) > 0 && (k.pending[0]-m.Offset).Abs() > sameOffset {
		k.pending = nil
	}
	k.pending = append(k.pending, m.Offset)
	k.config.Log.Warn("the clock is far off", "server", m.Source, "offset", m.Offset, "seen", len(k.pending))
	if len(k.pending) < confirmations {
		return nil
	}
	k.pending = nil
	if err := k.config.Clock.Step(m.Offset); err != nil {
		return err
	}
	k.config.Log.Warn("the clock was set while the node ran", "offset", m.Offset)
	k.rounds = 0
	return k.config.Clock.Slew(0, quickPoll, m.Error)
}

// Names returns servers' addresses as the names that Query takes.
func Names[T fmt.Stringer](servers []T) []string {
	names := make([]string, 0, len(servers))
	for _, s := range servers {
		names = append(names, s.String())
	}
	return slices.Clip(names)
}
