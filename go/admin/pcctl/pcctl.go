// Package pcctl is the command tree of the pcctl tool.
package pcctl

import (
	"context"
	"fmt"
	"io"
)

// Version is the release that the binary was built as. A release build sets it
// with the linker's -X flag; every other build leaves it at "dev".
var Version = "dev"

// Env is what a run of pcctl gets from the process around it.
type Env struct {
	// Args is the command line, the program's name first.
	Args []string
	// Stdout and Stderr take the results and the messages.
	Stdout, Stderr io.Writer
}

// Run runs one command line and returns its exit status: 0, 1 for a failure, 2
// for a usage error.
func Run(ctx context.Context, env Env) int {
	if len(env.Args) == 2 && env.Args[1] == "version" {
		if _, err := fmt.Fprintln(env.Stdout, Version); err != nil {
			return 1
		}
		return 0
	}
	fmt.Fprintln(env.Stderr, "usage: pcctl version")
	return 2
}
