package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// An Observed is a machine that is on, for programs that are no Go tests.
type Observed struct {
	config  Config
	on      *running
	console *Console
	since   time.Time
}

// Observe switches a machine on, for programs that are no Go tests, and has a
// function look at it. When the function returns, the plug is pulled and nothing
// is left of the machine.
func Observe(ctx context.Context, config Config, look func(context.Context, *Observed) error) (err error) {
	t, err := findTools()
	if err != nil {
		return err
	}
	if config, err = config.complete(); err != nil {
		return fmt.Errorf("make a machine: %w", err)
	}
	chosen, err := accelerator(ctx, config, t)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "machine-")
	if err != nil {
		return fmt.Errorf("make a folder for a machine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := prepare(config, t, folder); err != nil {
		return fmt.Errorf("make the machine %s: %w", config.Name, err)
	}
	o := &Observed{config: config}
	if o.on, err = launch(ctx, config, t, folder, chosen); err != nil {
		return fmt.Errorf("switch %s on: %w", config.Name, err)
	}
	var copies io.Writer = io.Discard
	if os.Getenv("MACHINE_CONSOLE") == "1" {
		copies = os.Stderr
	}
	o.console = newConsole(config.Name, copies)
	o.console.begin(o.on.console)
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		o.console.follow(o.on.console)
		_ = o.on.console.Close() // It was read to its end.
	}()
	defer func() {
		o.on.end()
		<-followed
	}()
	o.since = time.Now()
	if err := o.on.monitor.Execute(ctx, "cont", nil, nil); err != nil {
		return err
	}
	return look(ctx, o)
}

// Console is the machine's first serial port.
func (o *Observed) Console() *Console { return o.console }

// Since is when the machine began to execute instructions.
func (o *Observed) Since() time.Time { return o.since }

// Address is where a TCP port in Card.Forward is reached from this host.
func (o *Observed) Address(ctx context.Context, port int) (string, error) {
	var table string
	if err := o.on.monitor.Execute(ctx, "human-monitor-command", userNetwork(), &table); err != nil {
		return "", err
	}
	return forwarded(table, port)
}
