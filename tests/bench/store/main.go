// Command store measures pcctl beside restic, kopia, rclone crypt, cp, and a bare
// ceiling: wall time, CPU time, peak memory, as medians of interleaved rounds.
//
//	bazel run //tests/bench:store -- --help
//	go run ./tests/bench/store --rounds 1 --size 64MiB --files 500
//	go run ./tests/bench/store --workloads s3-file,s3-tree,ec-file,list,list-large
//
// The peers are built from the Go modules in tests/bench/peers. Timing decides
// nothing by itself: targets are printed beside what was measured.
//
// # Workloads
//
// file and tree, the ones that are run unless others are named, put a large file or
// many small ones into directories, get them back and verify every byte. s3-file
// and s3-tree do that with buckets of an S3 server, versitygw, behind a proxy that
// answers every request late, the same one for all tools; each tool's own defaults
// say how many requests it makes at once. The server and the proxy use the same
// processors as what is measured, so with few of them, or little latency, the rows
// say less about a network than about how busy the machine is. ec-file puts the
// large file into an erasure-coded set of six directories, any four of which
// suffice. No other tool has that by itself, so pcctl and the others put it into
// one directory beside it.
//
// list has many objects of a line each. Before a cold ls, whatever the tool keeps
// on this machine of what it has stored is deleted; a warm one follows a cold one.
// restic and kopia list the files of a snapshot, rclone those of the remote: each
// prints name, size and time. restic's ls, kopia's and rclone's look at one
// location, pcctl's at all.
//
// check finds out whether everything is there that should be, without reading the
// contents: so do restic check and kopia snapshot verify, for each location. rclone
// has only cryptcheck, which reads the files, and the source, and compares them. gc
// looks for what nothing uses any more and finds nothing: so do restic prune and
// kopia maintenance run --full, which also tidies up. rclone keeps nothing that
// could be collected.
//
// pcctl's objects are planted, with the packages that pcctl itself is made of; the
// others store theirs, which no one waits for a million times: list-large is for
// pcctl alone, in one directory, and only for ls, as the objects have no chunks.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

func main() { os.Exit(figures.Main("store", run)) }

// options are the command line's.
type options struct {
	rounds   int
	size     byteSize
	files    int
	fileSize byteSize
	// objects and largeObjects are how many list and list-large have.
	objects      int
	largeObjects int
	locations    []int
	buckets      []int
	latency      time.Duration
	workloads    []string
	tools        []string
	fileDirs     []string
	treeDir      string
	cache        string
	workspace    string
	pcctl        string
	goTool       string
	json         bool
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
	flags.IntVar(&opts.objects, "objects", 100_000, "number of objects in list")
	flags.IntVar(&opts.largeObjects, "large-objects", 1_000_000, "number of objects in list-large")
	locations := flags.String("locations", "1,3", "numbers of directories to store into")
	buckets := flags.String("buckets", "3", "numbers of buckets to store into")
	flags.DurationVar(&opts.latency, "latency", 30*time.Millisecond, "how much later than by itself the S3 server answers")
	workloads := flags.String("workloads", "file,tree", "what to measure, of "+strings.Join(workloadNames(), ","))
	tools := flags.String("tools", strings.Join(toolNames(), ","), "what to measure")
	fileDirs := flags.String("file-dirs", os.TempDir()+",/dev/shm", "where the large file is measured, one after the other")
	flags.StringVar(&opts.treeDir, "tree-dir", "/dev/shm", "where trees, lists and buckets are measured")
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
	if opts.objects < 1 || opts.largeObjects < 1 {
		return opts, errors.New("--objects and --large-objects must be at least 1")
	}
	if opts.locations, err = numbers(*locations); err != nil {
		return opts, fmt.Errorf("--locations: %w", err)
	}
	if opts.buckets, err = numbers(*buckets); err != nil {
		return opts, fmt.Errorf("--buckets: %w", err)
	}
	opts.workloads = strings.Split(*workloads, ",")
	if err := checkWorkloads(opts.workloads); err != nil {
		return opts, err
	}
	opts.tools = strings.Split(*tools, ",")
	opts.fileDirs = strings.Split(*fileDirs, ",")
	if opts.workspace, err = findWorkspace(opts.workspace); err != nil {
		return opts, err
	}
	return opts, nil
}

// numbers reads a list of numbers of locations.
func numbers(list string) ([]int, error) {
	var all []int
	for _, number := range strings.Split(list, ",") {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of locations", number)
		}
		all = append(all, n)
	}
	return all, nil
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
