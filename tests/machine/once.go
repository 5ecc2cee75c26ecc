package machine

import (
	"context"
	"fmt"
	"io"
)

// RunOnce runs a machine until it goes off by itself, for programs that are no
// Go tests. What comes from its second serial port is written to received. The
// console is nil only where the machine could not be started.
func RunOnce(ctx context.Context, config Config, received io.Writer) (console *Console, err error) {
	err = Observe(ctx, config, func(ctx context.Context, o *Observed) error {
		console = o.console
		copied := make(chan error, 1)
		go func() {
			_, err := io.Copy(received, o.on.port)
			copied <- err
		}()
		select {
		case <-o.on.qemu.done:
		case <-ctx.Done():
			return fmt.Errorf("%s did not go off: %w", o.config.Name, context.Cause(ctx))
		}
		if err := <-copied; err != nil {
			return fmt.Errorf("read the second serial port of %s: %w", o.config.Name, err)
		}
		if o.on.qemu.err != nil {
			return fmt.Errorf("QEMU: %w", o.on.qemu.failure())
		}
		return nil
	})
	return console, err
}
