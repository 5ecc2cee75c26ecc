//go:build unix

package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/keys"
)

// System returns the terminal that controls this process, whatever its
// standard input and output are.
func System() Terminal { return device("/dev/tty") }

// device is the path of a terminal.
type device string

// ReadSecret implements Terminal.
//
// It turns echo off by itself and leaves the rest to the terminal: the line is
// edited, and Ctrl-C raises a signal, as in any program. The terminal is read
// through Go's poller, which a context can interrupt; x/term's ReadPassword
// would stay in its read.
func (d device) ReadSecret(ctx context.Context, prompt string) (secret []byte, err error) {
	tty, err := os.OpenFile(string(d), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, ErrNoTerminal
	}
	defer tty.Close()
	restore, err := echoOff(tty)
	if err != nil {
		return nil, ErrNoTerminal
	}
	// The user's Enter wasn't echoed either: end the prompt's line.
	defer io.WriteString(tty, "\n")
	defer restore()
	if _, err := io.WriteString(tty, prompt); err != nil {
		return nil, fmt.Errorf("asking for the passphrase on the terminal: %w", err)
	}
	return readLine(ctx, tty)
}

// echoOff stops the terminal from showing what is typed, until restore.
func echoOff(tty *os.File) (restore func(), err error) {
	conn, err := tty.SyscallConn()
	if err != nil {
		return nil, err
	}
	var before unix.Termios
	err = control(conn, func(fd int) error {
		state, err := unix.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return err
		}
		before = *state
		state.Lflag &^= unix.ECHO | unix.ECHONL
		state.Lflag |= unix.ICANON | unix.ISIG
		state.Iflag |= unix.ICRNL
		return unix.IoctlSetTermios(fd, setTermios, state)
	})
	if err != nil {
		return nil, err
	}
	return func() {
		// Nothing better can be done about a terminal that is gone.
		_ = control(conn, func(fd int) error { return unix.IoctlSetTermios(fd, setTermios, &before) })
	}, nil
}

// control runs fn on a file's descriptor without taking it from the poller, as
// File.Fd would.
func control(conn interface{ Control(func(uintptr)) error }, fn func(fd int) error) error {
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = fn(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// readLine reads up to the end of a line, byte for byte so that a second
// prompt's answer, typed ahead, stays in the terminal.
func readLine(ctx context.Context, tty *os.File) ([]byte, error) {
	type result struct {
		line []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := scanLine(tty)
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		// Where terminals can't be polled (macOS), the read stays behind
		// until the process ends, which it is about to.
		if tty.SetReadDeadline(time.Unix(1, 0)) == nil {
			r := <-done
			clear(r.line)
		}
		return nil, context.Cause(ctx)
	}
}

// scanLine reads one line of at most keys.MaxPassphrase bytes.
func scanLine(r io.Reader) ([]byte, error) {
	line := make([]byte, 0, keys.MaxPassphrase+1)
	for {
		at := len(line)
		n, err := r.Read(line[at : at+1])
		if n == 1 {
			if line[:at+1][at] == '\n' {
				return line, nil
			}
			line = line[:at+1]
			if len(line) > keys.MaxPassphrase {
				clear(line)
				return nil, fmt.Errorf("the passphrase is longer than %d bytes", keys.MaxPassphrase)
			}
			continue
		}
		if errors.Is(err, io.EOF) {
			// Ctrl-D, or the terminal hung up.
			clear(line)
			return nil, ErrInterrupted
		}
		if err != nil {
			clear(line)
			return nil, fmt.Errorf("reading the passphrase from the terminal: %w", err)
		}
	}
}
