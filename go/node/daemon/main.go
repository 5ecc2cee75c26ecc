package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/clock"
	"powercloud.unidatum.com/go/node/network"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/resolver"
	"powercloud.unidatum.com/go/sys/sysctl"

	sysclock "powercloud.unidatum.com/go/sys/clock"
)

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

// Main runs pcd as a program on a node: version is the release's name, and pool
// the time servers for networks that name none, separated by blanks. It returns
// the exit status.
func Main(version, pool string) int {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "pcd: unexpected argument %q: pcd takes none\n", os.Args[1])
		return 2
	}
	// Everything in pcd that connects by name asks this one.
	net.DefaultResolver = resolver.New()
	connection, err := notify.Inherited()
	if err != nil {
		log.Error("pcd can't talk to PID 1", "error", err)
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGTERM, unix.SIGINT)
	defer stop()
	err = Run(ctx, Config{
		Version: version, Console: os.Stdout, Log: log, Notify: connection,
		Network: network.Config{ResolvConf: resolver.Path, RunFolder: "/run/powercloud/network", SysctlRoot: sysctl.Root, Log: log},
		Clock:   clock.Config{Clock: sysclock.Machine{}, Build: buildTime(version), Pool: strings.Fields(pool), Log: log},
	})
	if err != nil {
		log.Error("pcd ends", "error", err)
		return 1
	}
	return 0
}
