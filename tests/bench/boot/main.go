// Command boot measures how a node's system for amd64 starts, beside Debian's own
// kernel for clouds: time and instructions, the sizes of what is started, and the
// memory that is in use then, as medians of interleaved rounds.
//
//	bazel run //tests/bench:boot -- --help
//	bazel run //tests/bench:boot -- --rounds 1
//	bazel run //tests/bench:boot -- --workloads boot,rebuild
//
// Bazel builds what is started, so there is no other way to run it. Nothing decides
// by itself: targets are printed beside what was measured.
//
// # The two systems
//
// powercloud is the disk image that a release has, //disk:powercloud_disk_amd64.
// debian is the same with another kernel, that of the package
// linux-image-cloud-amd64 of Debian 12: the same systemd-stub, command line and
// initramfs, byte by byte. Where they differ is told in the report:
//
//   - Debian's drivers for virtio, thus for disk and network card, are modules, and
//     this initramfs has none. Its kernel spends no time on these devices, and a
//     node that runs on it gets no address.
//   - PowerCloud's kernel has its command line built in. The text is the same.
//
// # What is measured
//
// Each start is on a machine of its own, with one processor, 1 GiB of memory, OVMF, a
// virtio disk, and a memory balloon. There are two kinds: without a network card,
// where both systems do the same and are compared, and with one, at a network with a
// DHCP server, which is how a node is used. There, only PowerCloud's finds a card, and
// its banner comes later, since it waits until addresses stay as they are.
//
// Two moments are taken: "pcinit", when PID 1 says that it begins, and "banner", when
// the last line of pcd's banner is on the serial port. Three seconds lie between the
// moment that addresses stay as they are and the banner; they are part of both
// systems' time, and hardly any of the instructions.
//
// Time is from power-on, firmware included, and depends on what else the host does.
// Instructions are counted in other starts, since counting slows a machine down. There
// QEMU translates them on any host, and counts each that the processor executes, the
// firmware's too, and none while it is idle. The machine's clock goes by their number
// then, so a loop that waits for a time executes as many on any host, and two counts
// differ by no more than what depends on when disk and network answer. The machine is
// stopped for the count as soon as the line arrives; what it executes until then is
// counted as well.
//
// Memory in use is everything that can't be had by programs at the banner: the
// machine's 1 GiB less MemAvailable. That includes what the firmware keeps and what the
// kernel needs for itself. The node, which has no shell, tells it by the driver of its
// memory balloon. Debian's driver for it is a module, so that only the kernel's own sum,
// MemTotal less MemAvailable, is known of both systems: pcd logs it at the banner.
//
// rebuild is how long Bazel takes from an edit of pcd, another text in one of its log
// messages, to a new disk image. The edited file is in a folder that Bazel takes the
// package from instead of the checkout, which stays as it is; Bazel's server and its
// output are the checkout's, so that its next build looks at every package again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

func main() { os.Exit(figures.Main("boot", run)) }

// options are the command line's.
type options struct {
	rounds    int
	workloads []string
	// patience is how long one start may take.
	patience  time.Duration
	cache     string
	workspace string
	bazel     string
	json      bool
}

// Workloads.
const (
	workloadBoot    = "boot"
	workloadRebuild = "rebuild"
)

func workloadNames() []string { return []string{workloadBoot, workloadRebuild} }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	r := report{opts: opts}
	if r.loadBefore, err = figures.Load(); err != nil {
		return err
	}
	systems, err := findSystems()
	if err != nil {
		return err
	}
	if r.sizes, err = sizesOf(systems); err != nil {
		return err
	}
	if slices.Contains(opts.workloads, workloadBoot) {
		if r.results, r.accelerator, err = measureStarts(ctx, opts, systems, log); err != nil {
			return err
		}
	}
	if slices.Contains(opts.workloads, workloadRebuild) {
		if r.rebuilds, err = measureRebuilds(ctx, opts, log); err != nil {
			return err
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

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	flags := flag.NewFlagSet("boot", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&opts.rounds, "rounds", 5, "how often everything is measured; medians are reported")
	workloads := flags.String("workloads", workloadBoot, "what to measure, of "+strings.Join(workloadNames(), ","))
	flags.DurationVar(&opts.patience, "patience", 5*time.Minute, "how long one start may take")
	flags.StringVar(&opts.cache, "cache", filepath.Join(cache, "powercloud-bench"), "directory for the edited copy of pcd")
	flags.StringVar(&opts.workspace, "workspace", os.Getenv("BUILD_WORKSPACE_DIRECTORY"), "the checkout; Bazel names the one that it runs in")
	flags.StringVar(&opts.bazel, "bazel", "bazel", "the bazel command that builds again")
	flags.BoolVar(&opts.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	if opts.rounds < 1 {
		return opts, errors.New("--rounds must be at least 1")
	}
	if opts.patience <= 0 {
		return opts, errors.New("--patience must be more than 0")
	}
	opts.workloads = strings.Split(*workloads, ",")
	for _, name := range opts.workloads {
		if !slices.Contains(workloadNames(), name) {
			return opts, fmt.Errorf("--workloads: no workload %q; there are %s", name, strings.Join(workloadNames(), ", "))
		}
	}
	if opts.workspace == "" && slices.Contains(opts.workloads, workloadRebuild) {
		return opts, errors.New("building again needs the checkout; name it with --workspace")
	}
	return opts, nil
}
