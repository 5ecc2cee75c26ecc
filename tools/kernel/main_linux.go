// Kernel builds a Linux kernel from its source and merged fragments of
// configuration, in a root of Debian packages, and fails when a setting did not
// take effect.
//
//	kernel -architecture ARCHITECTURE -root ROOT -source SOURCE.tar.xz -settings FILE
//	       -scratch FOLDER -config FILE (-image FILE -map FILE | -configure-only)
//
// With -configure-only it writes the kernel's whole configuration and builds nothing.
//
// The bytes of its outputs follow from the root, the source and the settings
// alone. The scratch folder must not exist, takes about 3 GB, and is removed at
// the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"powercloud.unidatum.com/tools/debian/root"
)

func main() {
	status, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "kernel:", err)
		status = 1
	}
	os.Exit(status)
}

// run reads the arguments twice: outside, where it only cleans up, and in
// namespaces of its own, where it builds.
func run(arguments []string) (int, error) {
	o, err := parse(arguments)
	if err != nil {
		return 1, err
	}
	outside, status, err := root.Isolate()
	if outside {
		return status, errors.Join(err, os.RemoveAll(o.scratch))
	}
	if err != nil {
		return 1, err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return 0, o.build(ctx)
}

// options is what the command line asks for.
type options struct {
	architecture           architecture
	root, source, settings string
	scratch                string
	image, config, symbols string
	configureOnly          bool
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("kernel", flag.ContinueOnError)
	flags.Func("architecture", "`ARCHITECTURE`, amd64 or arm64", func(name string) error {
		found := slices.IndexFunc(architectures[:], func(a architecture) bool { return a.name == name })
		if found < 0 {
			return errors.New("it must be amd64 or arm64")
		}
		o.architecture = architectures[found]
		return nil
	})
	flags.StringVar(&o.root, "root", "", "the `ARCHIVE` of the root with compiler and tools")
	flags.StringVar(&o.source, "source", "", "the `ARCHIVE` of the kernel's source, .tar.xz")
	flags.StringVar(&o.settings, "settings", "", "the merged `FILE` of its configuration")
	flags.StringVar(&o.scratch, "scratch", "", "the `FOLDER` to work in")
	flags.StringVar(&o.image, "image", "", "the kernel, a `FILE` to write")
	flags.StringVar(&o.config, "config", "", "its configuration, a `FILE` to write")
	flags.StringVar(&o.symbols, "map", "", "its symbols, a `FILE` to write")
	flags.BoolVar(&o.configureOnly, "configure-only", false, "write the configuration alone, without -image and -map")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	required := []string{o.architecture.name, o.root, o.source, o.settings, o.scratch, o.config}
	if !o.configureOnly {
		required = append(required, o.image, o.symbols)
	} else if o.image != "" || o.symbols != "" {
		return o, errors.New("with -configure-only it takes neither -image nor -map")
	}
	if slices.Contains(required, "") || flags.NArg() > 0 {
		return o, errors.New("it takes every flag and nothing else")
	}
	return o, nil
}
