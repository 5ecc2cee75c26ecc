// Results counts the tests of a bazel run: it reads the file that bazel wrote
// with --build_event_json_file, and the test.xml files that it names, and
// prints one line: N passed, N failed, N skipped.
//
// What could not be built, or ended without a report, counts as one failed
// test. The exit status is 1 when anything failed or nothing ran.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(stderr, "usage: results FILE")
		return 2
	}
	events, err := os.Open(args[0])
	if err != nil {
		fmt.Fprintln(stderr, "results:", err)
		return 1
	}
	defer events.Close()
	total, err := count(events, os.ReadFile)
	if err != nil {
		fmt.Fprintln(stderr, "results:", err)
		return 1
	}
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped)
	if total.failed > 0 || total.passed == 0 {
		return 1
	}
	return 0
}
