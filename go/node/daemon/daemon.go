// Package daemon is pcd, a node's daemon: it puts the node's parts together as
// one tree of components and runs it.
package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	"powercloud.unidatum.com/go/api/message"
	"powercloud.unidatum.com/go/api/server"
	"powercloud.unidatum.com/go/node/clock"
	"powercloud.unidatum.com/go/node/lifecycle"
	"powercloud.unidatum.com/go/node/logs"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/node/supervisor"
	sysclock "powercloud.unidatum.com/go/sys/clock"
	"powercloud.unidatum.com/go/sys/usage"
)

// Config is what a daemon works with. Outside of PowerCloud OS, where Notify, Network
// and Clock are somebody else's, they are nil.
type Config struct {
	// Version is the release's name, or "dev".
	Version string
	// Console takes what people are to read.
	Console io.Writer
	// Log takes everything else.
	Log *slog.Logger
	// Notify is the connection with PID 1.
	Notify *notify.Conn
	// Network and Clock are the parts' own. The clock's servers come from the
	// network.
	Network *network.Config
	Clock   *clock.Config
	// Listen is where the API listens, as [net.Listen] takes it for TCP.
	Listen string
	// State is the folder of the node's state; "" for the disk that is found.
	State string
	// Lines are pcd's own lines for the node's log; nil on a node, where the kernel's log
	// has them.
	Lines *logs.Lines
	// RunFolder is where PID 1 leaves things for pcd, in memory.
	RunFolder string
}

// Run runs the daemon until ctx is done, PID 1 asks it to stop, or an admin does.
// None of that is an error.
func Run(ctx context.Context, c Config) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	parts, state := c.surroundings()
	if state != nil {
		// Elsewhere whoever has started it knows.
		c.Log.Info("pcd begins", "version", c.Version)
	}
	life := lifecycle.New(c.life(stop, state))
	run := life.Run
	if state != nil {
		screen := &console{to: c.Console, version: c.Version, network: state, notice: life.Notice,
			began: func() { c.logMemory(procfs) }}
		parts = append(parts, supervisor.Component{Name: "banner", Run: screen.run})
	} else {
		// There is nobody to mend what it fails by but whoever started it.
		run = func(ctx context.Context) error {
			if err := life.Run(ctx); err != nil && ctx.Err() == nil {
				stop(&failure{err})
			}
			return supervisor.ErrDone
		}
	}
	parts = append(parts, supervisor.Component{Name: "node", Run: run})
	var tree *supervisor.Tree
	if c.Notify != nil {
		parts = append(parts,
			supervisor.Component{Name: "alive", Run: func(ctx context.Context) error {
				return sayAlive(ctx, c, func() int { return len(tree.Statuses()) })
			}},
			supervisor.Component{Name: "orders", Run: func(ctx context.Context) error { return obey(ctx, c, stop) }})
	}
	tree = supervisor.New(supervisor.Options{Log: c.Log}, parts...)
	if err := tree.Run(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	var failed *failure
	if errors.As(context.Cause(ctx), &failed) {
		return failed.error
	}
	c.Log.Info("pcd ends", "reason", context.Cause(ctx))
	return nil
}

// procfs is where the kernel tells of the machine's memory.
const procfs = "/proc"

// logMemory logs how much memory the kernel manages, and how much of it programs could
// still take.
func (c Config) logMemory(proc string) {
	memory, err := usage.ReadMemory(proc)
	if err != nil {
		c.Log.Warn("how much memory there is can't be told", "err", err)
		return
	}
	c.Log.Info("memory", "total_kib", memory.Total>>10, "available_kib", (memory.Total-memory.Used)>>10)
}

// surroundings returns the parts that look after what is around a node, and what is
// known of the network; nil if that is somebody else's.
func (c Config) surroundings() ([]supervisor.Component, func() (network.State, <-chan struct{})) {
	if c.Network == nil {
		return nil, nil
	}
	net := network.New(*c.Network)
	keeper := *c.Clock
	keeper.Servers = func() ([]string, <-chan struct{}) {
		state, changed := net.State()
		return clock.Names(state.NTP), changed
	}
	return []supervisor.Component{{Name: "network", Run: net.Run}, {Name: "clock", Run: clock.New(keeper).Run}}, net.State
}

// failure is why pcd can't go on.
type failure struct{ error }

// errPower is why pcd ends when an admin wants it to.
var errPower = errors.New("an admin asked for it")

// life returns what the node's life works with. stop ends pcd.
func (c Config) life(stop context.CancelCauseFunc, state func() (network.State, <-chan struct{})) lifecycle.Config {
	var show func(lifecycle.Notice)
	if state == nil {
		// There are no addresses that it would have to wait for.
		show = func(notice lifecycle.Notice) {
			if _, err := io.WriteString(c.Console, notice.Text); err != nil {
				c.Log.Warn("the console can't be written to", "err", err)
			}
		}
	}
	return lifecycle.Config{
		Version: c.Version,
		Place:   c.findPlace,
		Bundle:  c.bundle(state),
		Listen: func(ctx context.Context) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", c.Listen)
		},
		Limits: server.DefaultLimits(),
		Member: c.member,
		Show:   show,
		Power: func(action string) error {
			if c.Notify == nil {
				stop(fmt.Errorf("%w: %s", errPower, action))
				return nil
			}
			kind := notify.PowerOff
			if action == message.Reboot {
				kind = notify.Reboot
			}
			return c.Notify.Send(notify.Message{Kind: kind, Text: errPower.Error()})
		},
		Random: rand.Reader,
		Now:    time.Now,
		Synced: c.synced,
		Log:    c.Log,
	}
}

// synced reports whether the clock is known to be right. If that can't be told, it is as
// if it were: nobody is let in by a doubt.
func (c Config) synced() bool {
	synced, err := sysclock.Machine{}.Synced()
	if err != nil {
		c.Log.Warn("whether the clock is right can't be told", "err", err)
	}
	return synced || err != nil
}

// sayAlive tells PID 1 that pcd has started, and then that it works. Before each
// word it looks at the tree, whose lock every component takes: if that hangs,
// pcd falls silent, and PID 1 starts it again.
func sayAlive(ctx context.Context, c Config, look func() int) error {
	if err := c.Notify.Send(notify.Message{Kind: notify.Ready, Text: c.Version}); err != nil {
		return err
	}
	ticker := time.NewTicker(notify.PingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		look()
		if err := c.Notify.Send(notify.Message{Kind: notify.Alive}); err != nil {
			return err
		}
	}
}

// errAsked is why pcd ends when PID 1 says so.
var errAsked = errors.New("PID 1 asked for it")

// obey does what PID 1 says.
func obey(ctx context.Context, c Config, stop context.CancelCauseFunc) error {
	go func() {
		<-ctx.Done()
		// This ends Receive. Nothing is sent after the tree has ended.
		_ = c.Notify.Close()
	}()
	for {
		m, err := c.Notify.Receive()
		switch {
		case errors.Is(err, notify.ErrMalformed):
			c.Log.Warn("PID 1 said something that isn't understood", "err", err)
		case err != nil:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			// PID 1 never closes it: it is the end of the machine's run.
			stop(fmt.Errorf("the connection with PID 1 ended: %w", err))
			return supervisor.ErrDone
		case m.Kind == notify.Stop:
			stop(fmt.Errorf("%w: %s", errAsked, m.Text))
		}
	}
}
