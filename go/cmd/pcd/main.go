// Command pcd is a node's daemon. PID 1 starts it; it takes no arguments.
//
// Everything it does is in package daemon.
package main

import (
	"os"

	"powercloud.unidatum.com/go/node/daemon"
)

// These are set by the build.
var (
	// version is the release's name.
	version = "dev"
	// ntpPool are the time servers for networks that name none, separated by
	// blanks. Several that don't depend on each other let a majority outvote one
	// that is wrong. Who distributes images at scale sets a pool zone of their
	// own here, as the NTP Pool Project asks for.
	ntpPool = "0.pool.ntp.org 1.pool.ntp.org 2.pool.ntp.org 3.pool.ntp.org time.cloudflare.com"
)

func main() {
	os.Exit(daemon.Main(version, ntpPool))
}
