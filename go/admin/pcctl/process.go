package pcctl

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/term"

	"powercloud.unidatum.com/go/admin/prompt"
)

// errInterrupted is what an interrupted command reports.
var errInterrupted = errors.New("interrupted")

// leastHeap is memory that is taken and never touched, in bytes. The garbage collector
// goes by the size of the heap: one of few megabytes, as most commands have, it would
// collect dozens of times a second.
const leastHeap = 32 << 20

// Main runs pcctl with the arguments, files, environment, terminal and signals
// of this process, and returns its exit status.
//
// The first Ctrl-C, SIGTERM or SIGHUP makes the command clean up and fail; the
// second one ends the process at once.
func Main() int {
	untouched := make([]byte, leastHeap)
	defer runtime.KeepAlive(untouched)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		select {
		case <-signals:
			cancel(errInterrupted)
			signal.Stop(signals)
		case <-finished:
		}
	}()
	// A reader that goes away is a failed write, to be reported like any
	// other, and not the end of the process before it has cleaned up.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	return Run(ctx, Env{
		Args:           os.Args,
		ConfigDir:      configDir(),
		Stdin:          os.Stdin,
		Stdout:         os.Stdout,
		Stderr:         os.Stderr,
		Getenv:         os.Getenv,
		Unsetenv:       os.Unsetenv,
		Terminal:       prompt.System(),
		ShowProgress:   isTerminal(os.Stderr),
		StdoutTerminal: isTerminal(os.Stdout),
	})
}

// configDir returns the directory for what pcctl keeps on this machine: the one
// that POWERCLOUD_CONFIG names, or else one of the user's. Without either, nothing
// is kept.
func configDir() string {
	if dir := os.Getenv("POWERCLOUD_CONFIG"); dir != "" {
		return dir
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "powercloud")
}

// isTerminal tells whether what is written to w is shown to a person.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
