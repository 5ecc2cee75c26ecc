// Package daemon is pcd, a node's daemon: it puts the node's parts together as
// one tree of components and runs it.
//
// So far these are the network, the clock, the console's message and the
// connection with PID 1. It serves nothing yet.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"powercloud.unidatum.com/go/node/clock"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/node/supervisor"
)

// Config is what a daemon works with.
type Config struct {
	// Version is the release's name, or "dev".
	Version string
	// Console takes what people are to read.
	Console io.Writer
	// Log takes everything else.
	Log *slog.Logger
	// Notify is the connection with PID 1; nil where there is none, as outside of
	// PowerCloud OS.
	Notify *notify.Conn
	// Network and Clock are the parts' own. The clock's servers come from the
	// network.
	Network network.Config
	Clock   clock.Config
}

// Run runs the daemon until ctx is done or PID 1 asks it to stop. Neither is an
// error.
func Run(ctx context.Context, c Config) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.Log.Info("pcd begins", "version", c.Version)
	net := network.New(c.Network)
	c.Clock.Servers = func() ([]string, <-chan struct{}) {
		state, changed := net.State()
		return clock.Names(state.NTP), changed
	}
	keeper := clock.New(c.Clock)
	var tree *supervisor.Tree
	parts := []supervisor.Component{
		{Name: "network", Run: net.Run},
		{Name: "clock", Run: keeper.Run},
		{Name: "banner", Run: func(ctx context.Context) error { return showBanner(ctx, c, net.State) }},
	}
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
	c.Log.Info("pcd ends", "reason", context.Cause(ctx))
	return nil
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
			c.Log.Warn("PID 1 said something that isn't understood", "error", err)
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
