package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
)

// RunOnce runs a machine until it goes off by itself, for programs that are no
// Go tests. What comes from its second serial port is written to received. The
// console is nil only where the machine could not be started.
func RunOnce(ctx context.Context, config Config, received io.Writer) (console *Console, err error) {
	t, err := findTools()
	if err != nil {
		return nil, err
	}
	if config, err = config.complete(); err != nil {
		return nil, fmt.Errorf("make a machine: %w", err)
	}
	chosen, err := accelerator(ctx, config, t)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "machine-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for a machine: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := prepare(config, t, folder); err != nil {
		return nil, fmt.Errorf("make the machine %s: %w", config.Name, err)
	}
	r, err := launch(ctx, config, t, folder, chosen)
	if err != nil {
		return nil, fmt.Errorf("switch %s on: %w", config.Name, err)
	}
	defer r.end()
	var copies io.Writer = io.Discard
	if os.Getenv("MACHINE_CONSOLE") == "1" {
		copies = os.Stderr
	}
	console = newConsole(config.Name, copies)
	console.begin(r.console)
	followed, copied := make(chan struct{}), make(chan error, 1)
	go func() {
		console.follow(r.console)
		close(followed)
	}()
	go func() {
		_, err := io.Copy(received, r.port)
		copied <- err
	}()
	if err := r.monitor.Execute(ctx, "cont", nil, nil); err != nil {
		return console, err
	}
	select {
	case <-r.qemu.done:
	case <-ctx.Done():
		return console, fmt.Errorf("%s did not go off: %w", config.Name, context.Cause(ctx))
	}
	<-followed
	if err := <-copied; err != nil {
		return console, fmt.Errorf("read the second serial port of %s: %w", config.Name, err)
	}
	if r.qemu.err != nil {
		return console, fmt.Errorf("QEMU: %w", r.qemu.failure())
	}
	return console, nil
}
