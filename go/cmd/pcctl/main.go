// Command pcctl is the tool that an admin runs a PowerCloud cluster with.
//
// Everything it does is in package pcctl, so that tests can run the same code
// in their own process.
package main

import (
	"context"
	"os"

	"powercloud.unidatum.com/go/admin/pcctl"
)

func main() {
	os.Exit(pcctl.Run(context.Background(), pcctl.Env{
		Args:   os.Args,
		Stdout: os.Stdout,
		Stderr: os.Stderr,
	}))
}
