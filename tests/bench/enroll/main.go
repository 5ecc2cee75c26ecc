// Command enroll measures how long an admin waits for a node: until it is a member, and,
// after a restart, until it is open again. It starts a node's disk image in virtual
// machines and asks it by pcctl's own code; medians of rounds are printed.
//
//	bazel run //tests/bench:enroll -- --help
//	bazel run //tests/bench:enroll -- --rounds 1
//
// Bazel builds what is started, so there is no other way to run it. Nothing decides by
// itself: targets are printed beside what was measured.
//
// # What is measured
//
// Each round has a machine of its own, with two processors, 1 GiB of memory and a disk of
// 1 GiB, and a cluster over three directories.
//
// enrolled is from the moment that pcctl begins its first request to the node, which
// proves that it knows the code on the console, to the node's answer that it is a member:
// by then it has made its state volume and serves the cluster. What pcctl does between is
// a part of it: it opens the cluster, issues a certificate, and enters the node into the
// registry. It opens the cluster by the recovery key, as deriving a key from a passphrase
// takes what time the admin's machine takes, whatever the node does.
//
// enrollment is the last request of that alone: from sending the certificate and the
// volume's key to the answer.
//
// Then the node is told to reboot. open is from the moment that pcctl begins to send the
// volume's key to the first answer of the API of the node that is open, to "node info".
// unlock is the request with the key alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/machine"
	"powercloud.unidatum.com/tools/lint"
)

// diskImage is set by Bazel to where it has put the image.
var diskImage string

func main() { os.Exit(figures.Main("enroll", run)) }

// options are the command line's.
type options struct {
	rounds int
	// patience is how long one round may take.
	patience time.Duration
	json     bool
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("enroll", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&opts.rounds, "rounds", 3, "how often everything is measured; medians are reported")
	flags.DurationVar(&opts.patience, "patience", machine.Patience, "how long one round may take")
	flags.BoolVar(&opts.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	switch {
	case flags.NArg() > 0:
		return opts, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case opts.rounds < 1:
		return opts, errors.New("--rounds must be at least 1")
	case opts.patience <= 0:
		return opts, errors.New("--patience must be more than 0")
	}
	return opts, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	image, err := findImage()
	if err != nil {
		return err
	}
	r := report{opts: opts}
	if r.loadBefore, err = figures.Load(); err != nil {
		return err
	}
	if r.accelerator, err = machine.Accelerator(ctx); err != nil {
		return err
	}
	for round := range opts.rounds {
		one, err := measure(ctx, opts, image)
		if err != nil {
			return fmt.Errorf("round %d: %w", round+1, err)
		}
		fmt.Fprintf(stderr, "round %d: enrolled after %.2f s, open after %.2f s\n", round+1, one[enrolled].Seconds(), one[opened].Seconds())
		r.rounds = append(r.rounds, one)
	}
	if r.loadAfter, err = figures.Load(); err != nil {
		return err
	}
	if opts.json {
		return r.writeJSON(stdout)
	}
	return r.writeText(stdout)
}

func findImage() (string, error) {
	if diskImage == "" {
		return "", errors.New("only Bazel builds what this starts: bazel run //tests/bench:enroll")
	}
	found, err := lint.Runfile(diskImage)
	if err != nil {
		return "", fmt.Errorf("find what is to be started: %w", err)
	}
	return found, nil
}
