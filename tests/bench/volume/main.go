// Command volume measures a node's state volume beside the disk that it is on: how fast
// much is written in sequence, and read, as medians of interleaved rounds in one virtual
// machine that runs the node's kernel.
//
//	bazel run //tests/bench:volume -- --help
//	bazel run //tests/bench:volume -- --rounds 1 --speeds 0
//
// Bazel builds what is run, so there is no other way to run it. Nothing decides by
// itself: the target is printed beside what was measured.
//
// # What is measured
//
// Four places, each on a virtio disk of the same size and kind:
//
//   - the bare disk
//   - a file on ext4 on a disk, without encryption
//   - the volume's device: dm-crypt with AES-256-XTS and HMAC-SHA256 over dm-integrity
//     with its journal, over a disk
//   - a file on the volume's ext4
//
// The two file systems are the same, that of new state volumes but larger. Everything is
// written once before the first round, so that the disks' files on the host have their
// size. A write is one of pieces of 1 MiB, until all of it lasts (fsync); a read comes
// from the disk, and the machine's own statistics must agree that so much was moved, but
// for what dm-integrity still has in its journal, and thus in memory.
//
// # Speeds
//
// The target is about the disk: what goes through the journal of dm-integrity is written
// twice. How fast a processor encrypts is another matter, and one that QEMU translates
// has no instructions for that. So everything is measured several times, each on a
// machine of its own: on disks that are as fast as the host can, where the processor
// decides, and on disks that are slow enough for the disk to decide, as most are beside a
// real processor.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/machine"
)

func main() { os.Exit(figures.Main("volume", run)) }

// options are the command line's.
type options struct {
	rounds int
	// size is in bytes.
	size int64
	// speeds are those of the disks in MiB in a second, 0 for as fast as the host can.
	speeds   []int64
	cpus     int
	patience time.Duration
	json     bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	files, err := findFiles()
	if err != nil {
		return err
	}
	log := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	r := report{opts: opts, results: map[int64]results{}}
	if r.loadBefore, err = figures.Load(); err != nil {
		return err
	}
	if r.accelerator, err = machine.Accelerator(ctx); err != nil {
		return err
	}
	for _, speed := range opts.speeds {
		log("on %s, by %s", disks(speed), r.accelerator)
		if r.results[speed], err = measure(ctx, opts, files, speed, stderr); err != nil {
			return fmt.Errorf("on %s: %w", disks(speed), err)
		}
	}
	if r.loadAfter, err = figures.Load(); err != nil {
		return err
	}
	if opts.json {
		return r.writeJSON(stdout)
	}
	return r.writeText(stdout)
}

// largest is how many MiB the file system has room for, besides its own tables.
const largest = 40

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("volume", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&opts.rounds, "rounds", 3, "how often everything is measured; medians are reported")
	size := flags.Int64("size", 32, fmt.Sprintf("how many MiB are written and read each time, at most %d", largest))
	speeds := flags.String("speeds", "0,8", "how fast the disks are, in MiB in a second: each speed on a machine of its own, and 0 as fast as the host can")
	flags.IntVar(&opts.cpus, "cpus", min(runtime.NumCPU(), 2), "how many processors the machine has")
	flags.DurationVar(&opts.patience, "patience", 15*time.Minute, "how long one machine may take")
	flags.BoolVar(&opts.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.size = *size << 20
	switch {
	case flags.NArg() > 0:
		return opts, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	case opts.rounds < 1:
		return opts, errors.New("--rounds must be at least 1")
	case *size < 1 || *size > largest:
		return opts, fmt.Errorf("--size must be between 1 and %d", largest)
	case opts.cpus < 1:
		return opts, errors.New("--cpus must be at least 1")
	case opts.patience <= 0:
		return opts, errors.New("--patience must be more than 0")
	}
	for _, text := range strings.Split(*speeds, ",") {
		speed, err := strconv.ParseInt(text, 10, 32)
		if err != nil || speed < 0 {
			return opts, fmt.Errorf("--speeds: %q is no speed", text)
		}
		opts.speeds = append(opts.speeds, speed)
	}
	return opts, nil
}

// disks says of what speed disks are.
func disks(speed int64) string {
	if speed == 0 {
		return "disks as fast as the host can"
	}
	return fmt.Sprintf("disks of %d MiB/s", speed)
}
