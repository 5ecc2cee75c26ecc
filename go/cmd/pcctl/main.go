// Command pcctl is the tool that an admin runs a PowerCloud cluster with.
//
// Everything it does is in package pcctl, so that tests can run the same code
// in their own process.
package main

import (
	"os"

	"powercloud.unidatum.com/go/admin/pcctl"
)

func main() {
	os.Exit(pcctl.Main())
}
