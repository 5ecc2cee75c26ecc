// Oci builds, loads and pushes container images. Under WORKSPACE it is what
// stands behind the rules of @rules_oci; it isn't meant to be called by hand.
//
// Its commands are image, index, digest, archive, load and push. A folder that
// holds an image is an OCI image layout.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// errUsage is the error of a command line that can't be understood. What is
// wrong has been printed.
var errUsage = errors.New("usage")

// A command runs with the arguments that follow its name.
type command func(ctx context.Context, arguments []string, stdout, stderr io.Writer) error

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run runs a command and returns the exit status.
func run(ctx context.Context, arguments []string, stdout, stderr io.Writer) int {
	commands := map[string]command{
		"image": buildImage, "index": buildIndex, "digest": writeDigest,
		"archive": writeArchive, "load": load, "push": push,
	}
	if len(arguments) == 0 || commands[arguments[0]] == nil {
		fmt.Fprintln(stderr, "usage: oci image|index|digest|archive|load|push ARGUMENTS")
		return 2
	}
	err := commands[arguments[0]](ctx, arguments[1:], stdout, stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	fmt.Fprintf(stderr, "oci: %v\n", err)
	return 1
}

// parse parses the flags of a command, of which the named ones are mandatory.
// Arguments that are no flags are an error unless any are wanted.
func parse(flags *flag.FlagSet, arguments []string, stderr io.Writer, wantsArguments bool, mandatory ...string) error {
	flags.SetOutput(stderr)
	if err := flags.Parse(arguments); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return errUsage
	}
	if (flags.NArg() > 0) != wantsArguments {
		fmt.Fprintf(stderr, "oci %s: unexpected or missing arguments: %q\n", flags.Name(), flags.Args())
		return errUsage
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range mandatory {
		if !given[name] {
			fmt.Fprintf(stderr, "oci %s: -%s is missing\n", flags.Name(), name)
			return errUsage
		}
	}
	return nil
}

// list is a flag that may be given several times.
type list []string

func (l *list) String() string { return fmt.Sprint(*l) }

func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}
