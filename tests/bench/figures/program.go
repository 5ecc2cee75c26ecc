package figures

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main runs a benchmark program with its command line, until it ends or is interrupted, and
// returns the exit status: 2 for an error that wraps [flag.ErrHelp], 1 for any other, which
// is printed.
func Main(name string, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) int {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 2
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
	return 0
}

// WriteJSON writes a report for programs to read.
func WriteJSON(out io.Writer, report any) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}
