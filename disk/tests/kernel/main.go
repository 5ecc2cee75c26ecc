// Command kernel writes a stand-in for a kernel, for tests of the rules that
// assemble images.
//
//	kernel ARCHITECTURE FILE
package main

import (
	"fmt"
	"os"

	"powercloud.unidatum.com/go/image/uki/ukitest"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "kernel: it takes an architecture and a file")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[2], ukitest.Kernel(os.Args[1], "6.1.0-stand-in"), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "kernel: %v\n", err)
		os.Exit(1)
	}
}
