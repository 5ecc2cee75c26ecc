package prompt

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"powercloud.unidatum.com/go/keys"
)

// System returns the console of this process, whatever its standard input and
// output are.
func System() Terminal { return console{} }

type console struct{}

// ReadSecret implements Terminal.
func (console) ReadSecret(ctx context.Context, prompt string) ([]byte, error) {
	in, err := os.OpenFile("CONIN$", os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	defer in.Close()
	out, err := os.OpenFile("CONOUT$", os.O_RDWR, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	defer out.Close()
	state, err := term.GetState(int(in.Fd()))
	if err != nil {
		return nil, ErrNoTerminal
	}
	if _, err := io.WriteString(out, prompt); err != nil {
		return nil, fmt.Errorf("asking for the passphrase on the console: %w", err)
	}
	defer io.WriteString(out, "\r\n")

	type result struct {
		line []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := term.ReadPassword(int(in.Fd()))
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err == io.EOF:
			return nil, ErrInterrupted
		case r.err != nil:
			return nil, fmt.Errorf("reading the passphrase from the console: %w", r.err)
		case len(r.line) > keys.MaxPassphrase:
			clear(r.line)
			return nil, fmt.Errorf("the passphrase is longer than %d bytes", keys.MaxPassphrase)
		}
		return r.line, nil
	case <-ctx.Done():
		// A console read can't be interrupted: it stays behind until the
		// process ends, which it is about to.
		if err := term.Restore(int(in.Fd()), state); err != nil {
			return nil, fmt.Errorf("restoring the console: %w", err)
		}
		return nil, context.Cause(ctx)
	}
}
