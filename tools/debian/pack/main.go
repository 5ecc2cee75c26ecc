// Pack writes a root made of Debian packages, as package root describes it.
//
//	pack -output FILE [-link PATH=TARGET]... PACKAGE.deb...
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"powercloud.unidatum.com/tools/debian/root"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("pack", flag.ContinueOnError)
	output := flags.String("output", "", "the `FILE` to write")
	links := map[string]string{}
	flags.Func("link", "a link in the root, as `PATH=TARGET`", func(value string) error {
		name, target, ok := strings.Cut(value, "=")
		if !ok || name == "" || target == "" {
			return errors.New("it must be PATH=TARGET")
		}
		if _, ok := links[name]; ok {
			return fmt.Errorf("%s is there already", name)
		}
		links[name] = target
		return nil
	})
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if *output == "" || flags.NArg() == 0 {
		return errors.New("it takes -output FILE, -link PATH=TARGET any number of times, and packages")
	}
	file, err := os.Create(*output)
	if err != nil {
		return err
	}
	return errors.Join(root.Pack(file, flags.Args(), links), file.Close())
}
