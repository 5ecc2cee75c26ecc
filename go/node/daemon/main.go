package daemon

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/cluster/address"
	"powercloud.unidatum.com/go/node/clock"
	"powercloud.unidatum.com/go/node/logs"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/resolver"
	"powercloud.unidatum.com/go/sys/sysctl"

	sysclock "powercloud.unidatum.com/go/sys/clock"
)

// runFolder is where PID 1 and pcd keep what lasts as long as the machine runs.
const runFolder = "/run/powercloud"

// source is a date before which no build of this source can have been made. A
// release's name has its own date.
var source = time.Date(2026, time.November, 30, 0, 0, 0, 0, time.UTC)

// buildTime returns when a version was built: releases are named vYYYY.MM.DD,
// and what is between two of them after the earlier one.
func buildTime(version string) time.Time {
	const form = "v2006.01.02"
	if len(version) >= len(form) {
		if t, err := time.Parse(form, version[:len(form)]); err == nil && t.After(source) {
			return t
		}
	}
	return source
}

// newLog returns what pcd logs with. The time isn't in its lines: the kernel's log,
// where they go on a node, has it.
func newLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})).With("svc", "pcd")
}

// flags are those of a pcd that is an ordinary program.
type flags struct {
	state, listen string
}

// parse reads the command line, without the program's name. On a node it is empty.
func parse(args []string, output io.Writer) (*flags, error) {
	set := flag.NewFlagSet("pcd", flag.ContinueOnError)
	// What is wrong is in the error, and said once.
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	usage := func() {
		fmt.Fprintln(output, "usage: pcd --state DIR --listen ADDR\n\nRuns a node as an ordinary program, which keeps its state in DIR and serves its API\nat ADDR (HOST:PORT). In PowerCloud OS, pcd is started without arguments.")
	}
	f := new(flags)
	set.StringVar(&f.state, "state", "", "the `DIR` where the node keeps its state")
	set.StringVar(&f.listen, "listen", "", "the `ADDR` of the node's API")
	if err := set.Parse(args); err != nil {
		usage()
		return nil, err
	}
	if set.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	if (f.state == "") != (f.listen == "") {
		return nil, errors.New("give both --state DIR and --listen ADDR")
	}
	if f.listen != "" {
		if _, port, err := net.SplitHostPort(f.listen); err != nil || port == "" {
			return nil, fmt.Errorf("--listen %q is not HOST:PORT", f.listen)
		}
	}
	return f, nil
}

// errAlone is why a pcd without flags doesn't run that PID 1 of a node hasn't started: it
// would take over the machine's network, clock and disk.
var errAlone = errors.New("give --state DIR and --listen ADDR: only PowerCloud OS itself starts pcd without them")

// Main runs pcd as a program: on a node, or, with flags, on any Linux. version is the
// release's name, and pool the time servers for networks that name none, separated by
// blanks. It returns the exit status.
func Main(version, pool string) int {
	f, err := parse(os.Args[1:], os.Stderr)
	var config Config
	if err == nil {
		config, err = f.config(version, pool)
	}
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintf(os.Stderr, "pcd: %v\n", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	if err := Run(ctx, config); err != nil {
		config.Log.Error("pcd ends", "err", err)
		return 1
	}
	return 0
}

// config returns what the daemon works with. Its error, which wraps errAlone where nobody
// but a node's PID 1 could want this, comes before anything is touched.
func (f *flags) config(version, pool string) (Config, error) {
	c := Config{Version: version, Console: os.Stdout}
	if f.state != "" {
		c.State, c.Listen, c.Lines = f.state, f.listen, logs.NewLines()
		c.Log = newLog(io.MultiWriter(c.Lines, os.Stderr))
		return c, nil
	}
	var err error
	if c.Notify, err = notify.Inherited(); err != nil {
		return Config{}, err
	}
	if c.Notify == nil {
		return Config{}, errAlone
	}
	c.Log = newLog(os.Stderr)
	c.RunFolder = runFolder
	c.Listen = net.JoinHostPort("", strconv.Itoa(address.APIPort))
	// Everything in pcd that connects by name asks this one.
	net.DefaultResolver = resolver.New()
	c.Network = &network.Config{ResolvConf: resolver.Path, RunFolder: runFolder + "/network", SysctlRoot: sysctl.Root, Log: c.Log}
	c.Clock = &clock.Config{Clock: sysclock.Machine{}, Build: buildTime(version), Pool: strings.Fields(pool), Log: c.Log}
	return c, nil
}
