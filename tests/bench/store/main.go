// Command store measures put, get and check --verify of pcctl beside restic,
// kopia, rclone crypt, cp, and a bare ceiling: wall time, CPU time, peak
// memory, as medians of interleaved rounds.
//
//	bazel run //tests/bench:store -- --help
//	go run ./tests/bench/store --rounds 1 --size 64MiB --files 500
//
// The peers are built from the Go modules in tests/bench/peers. Timing decides
// nothing by itself: targets are printed beside what was measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "store:", err)
		os.Exit(1)
	}
}

// options are the command line's.
type options struct {
	rounds    int
	size      byteSize
	files     int
	fileSize  byteSize
	locations []int
	workloads []string
	tools     []string
	fileDirs  []string
	treeDir   string
	cache     string
	workspace string
	pcctl     string
	goTool    string
	json      bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	if len(args) > 0 && args[0] == selfCommand {
		return runSelf(args[1:])
	}
	opts, err := parse(args, stderr)
	if err != nil {
		return err
	}
	log := func(format string, args ...any) { fmt.Fprintf(stderr, format+"\n", args...) }
	tools, err := prepareTools(ctx, opts, log)
	if err != nil {
		return err
	}
	log("using the free memory once")
	if err := useMemory(ctx); err != nil {
		return err
	}
	results, err := measureAll(ctx, opts, tools, log)
	if err != nil {
		return err
	}
	report := newReport(opts, results)
	if opts.json {
		return report.writeJSON(stdout)
	}
	return report.writeText(stdout)
}

func parse(args []string, stderr io.Writer) (options, error) {
	opts := options{size: 1 << 30, fileSize: 10 << 10}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	flags := flag.NewFlagSet("store", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.IntVar(&opts.rounds, "rounds", 3, "how often everything is measured; medians are reported")
	flags.Var(&opts.size, "size", "size of the large file")
	flags.IntVar(&opts.files, "files", 10000, "number of files in the tree")
	flags.Var(&opts.fileSize, "file-size", "size of each file in the tree")
	locations := flags.String("locations", "1,3", "numbers of directories to store into")
	workloads := flags.String("workloads", "file,tree", "what to store")
	tools := flags.String("tools", strings.Join(toolNames(), ","), "what to measure")
	fileDirs := flags.String("file-dirs", os.TempDir()+",/dev/shm", "where the large file is measured, one after the other")
	flags.StringVar(&opts.treeDir, "tree-dir", "/dev/shm", "where the tree is measured")
	flags.StringVar(&opts.cache, "cache", filepath.Join(cache, "powercloud-bench"), "directory for the programs that are built")
	flags.StringVar(&opts.workspace, "workspace", "", "the checkout; found by itself if empty")
	flags.StringVar(&opts.pcctl, "pcctl", "", "pcctl's binary; built from the checkout if empty")
	flags.StringVar(&opts.goTool, "go", "go", "the go command that builds")
	flags.BoolVar(&opts.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	if opts.rounds < 1 || opts.files < 1 {
		return opts, errors.New("--rounds and --files must be at least 1")
	}
	for _, number := range strings.Split(*locations, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return opts, fmt.Errorf("--locations: %q is not a number of directories", number)
		}
		opts.locations = append(opts.locations, n)
	}
	opts.workloads = strings.Split(*workloads, ",")
	opts.tools = strings.Split(*tools, ",")
	opts.fileDirs = strings.Split(*fileDirs, ",")
	if opts.workspace, err = findWorkspace(opts.workspace); err != nil {
		return opts, err
	}
	return opts, nil
}

// findWorkspace returns the checkout's top: the one given, the one that Bazel
// names, or the first one above the working directory.
func findWorkspace(given string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	if dir := os.Getenv("BUILD_WORKSPACE_DIRECTORY"); dir != "" {
		return dir, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, peersDir)); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", fmt.Errorf("no checkout (a folder with %s) found from the working directory up; name it with --workspace", peersDir)
		}
		dir = filepath.Dir(dir)
	}
}

// byteSize is a number of bytes, as a flag: 10KiB, 1GiB, 4096.
type byteSize int64

var byteUnits = []struct {
	suffix string
	size   int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

// String is the size in the largest unit that divides it.
func (s byteSize) String() string {
	for _, unit := range byteUnits {
		if s != 0 && int64(s)%unit.size == 0 {
			return fmt.Sprintf("%d %s", int64(s)/unit.size, unit.suffix)
		}
	}
	return fmt.Sprintf("%d bytes", int64(s))
}

// Set reads a size.
func (s *byteSize) Set(text string) error {
	factor := int64(1)
	for _, unit := range byteUnits {
		if number, ok := strings.CutSuffix(text, unit.suffix); ok {
			text, factor = number, unit.size
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 40)
	if err != nil || n < 1 {
		return fmt.Errorf("not a size such as 10KiB or 1GiB")
	}
	*s = byteSize(n * factor)
	return nil
}

// cores is the number of CPU cores that everything may use.
func cores() int { return runtime.NumCPU() }
