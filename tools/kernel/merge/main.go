// Merge puts the fragments of a kernel's configuration together, without their
// comments, so that a kernel is built again only where a setting changed.
//
//	merge [-architecture ARCHITECTURE -command-line FILE[,FILE]] -output FILE FRAGMENT...
//
// With a command line, the kernel has that one built in and takes no other.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/go/image/uki"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "merge:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("merge", flag.ContinueOnError)
	architecture := flags.String("architecture", "", "`ARCHITECTURE` of the kernel with a command line, amd64 or arm64")
	commandLine := flags.String("command-line", "", "`FILES` of the command line, with commas between them")
	output := flags.String("output", "", "the `FILE` to write")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *output == "" || flags.NArg() == 0 || (*architecture == "") != (*commandLine == "") {
		return errors.New("it takes an output, at least one fragment, and a command line only with an architecture")
	}
	var fragments [][]kconfig.Line
	for _, name := range flags.Args() {
		content, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("read a fragment: %w", err)
		}
		lines, err := kconfig.ParseFragment(name, string(content))
		if err != nil {
			return err
		}
		fragments = append(fragments, lines)
	}
	if *commandLine != "" {
		line, err := uki.ReadCommandLine(strings.Split(*commandLine, ",")...)
		if err != nil {
			return err
		}
		lines, err := builtIn(*architecture, line)
		if err != nil {
			return err
		}
		fragments = append(fragments, lines)
	}
	merged, err := kconfig.Merge(fragments...)
	if err != nil {
		return err
	}
	return os.WriteFile(*output, []byte(kconfig.Format(merged)), 0o644)
}

// builtIn returns the settings by which a kernel has the command line and heeds no
// other, whatever starts it.
func builtIn(architecture, line string) ([]kconfig.Line, error) {
	if strings.ContainsAny(line, `"\`) {
		return nil, fmt.Errorf("the command line %s has a quote or a backslash, which a kernel's configuration can't have", line)
	}
	symbols := map[string][]string{
		"amd64": {"CMDLINE_BOOL", "CMDLINE_OVERRIDE"},
		"arm64": {"CMDLINE_FORCE"},
	}[architecture]
	if symbols == nil {
		return nil, fmt.Errorf("the architecture must be amd64 or arm64, not %s", architecture)
	}
	const file = "the command line"
	lines := []kconfig.Line{{Symbol: "CMDLINE", Value: kconfig.Value(`"` + line + `"`), File: file, Number: 1}}
	for _, symbol := range symbols {
		lines = append(lines, kconfig.Line{Symbol: symbol, Value: "y", File: file, Number: 1})
	}
	return lines, nil
}
