// Command pcinit is PID 1 of a node: the kernel starts it, it sets up the
// machine and runs pcd. It takes no arguments.
//
// Everything it does is in package boot.
package main

import (
	"fmt"
	"os"

	"powercloud.unidatum.com/go/node/boot"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "pcinit: it is the first process of a node and can't be run by hand; the kernel starts it as /init")
		os.Exit(2)
	}
	if err := boot.Run(boot.Node()); err != nil {
		fmt.Fprintln(os.Stderr, "pcinit:", err)
		os.Exit(1)
	}
}
