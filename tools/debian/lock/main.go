// Command lock writes the lock file of Debian packages, tools/debian/packages.lock.json.
//
//	bazel run //tools/debian/lock                           locks every set anew
//	bazel run //tools/debian/lock -- -set NAME PACKAGE...   adds the set NAME, or replaces it
//	bazel run //tools/debian/lock -- -remove NAME           removes it
//
// A set holds the packages and everything that they depend on; with -alone
// only the packages themselves. Versions come from Debian's main suite only,
// through whichever mirror the machine's APT is set up for. The packages of a set
// are for one -architecture, amd64 or arm64, whatever the machine's is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"

	"powercloud.unidatum.com/tools/debian/apt"
	"powercloud.unidatum.com/tools/debian/lockfile"
	"powercloud.unidatum.com/tools/lint"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, resolve)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(os.Stderr, "lock: %v\n", err)
		os.Exit(1)
	}
}

// options is what the command line asks for.
type options struct {
	set          string
	remove       string
	architecture string
	alone        bool
	file         string
	packages     []string
}

func parse(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("lock", flag.ContinueOnError)
	flags.StringVar(&o.set, "set", "", "add or replace the set `NAME`, made of the packages that follow")
	flags.StringVar(&o.remove, "remove", "", "remove the set `NAME`")
	flags.StringVar(&o.architecture, "architecture", "amd64", "the set's `ARCHITECTURE`, amd64 or arm64")
	flags.BoolVar(&o.alone, "alone", false, "leave out what the packages depend on")
	flags.StringVar(&o.file, "file", "", "the lock `FILE` (default tools/debian/packages.lock.json)")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	o.packages = flags.Args()
	if (o.set != "") != (len(o.packages) > 0) || o.set != "" && o.remove != "" {
		return o, errors.New("give -set NAME and packages, or -remove NAME, or nothing to lock every set anew")
	}
	if o.file == "" {
		root, err := lint.Root()
		if err != nil {
			return o, err
		}
		o.file = filepath.Join(root, "tools", "debian", "packages.lock.json")
	}
	return o, nil
}

// A resolver finds the packages of a set whose Packages are yet unknown.
type resolver func(ctx context.Context, suite string, set lockfile.Set) ([]lockfile.Package, error)

// run changes the lock file as the arguments say, and prints what changed.
func run(ctx context.Context, arguments []string, out io.Writer, find resolver) error {
	o, err := parse(arguments)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(o.file)
	if err != nil {
		return fmt.Errorf("read the lock file: %w", err)
	}
	lock, err := lockfile.Parse(content)
	if err != nil {
		return err
	}
	sets := slices.Clone(lock.Sets)
	switch {
	case o.remove != "":
		lock.Sets = slices.DeleteFunc(lock.Sets, func(s lockfile.Set) bool { return s.Name == o.remove })
		if len(lock.Sets) == len(sets) {
			return fmt.Errorf("the lock file has no set %s", o.remove)
		}
		sets = nil
	case o.set != "":
		sets = []lockfile.Set{{Name: o.set, Architecture: o.architecture, Closure: !o.alone, Requested: o.packages}}
	}
	for _, set := range sets {
		set.Packages, err = find(ctx, lock.Suite, set)
		if err != nil {
			return fmt.Errorf("lock the set %s: %w", set.Name, err)
		}
		lock.Put(set)
		fmt.Fprintf(out, "%s: %d packages for %s\n", set.Name, len(set.Packages), set.Architecture)
	}
	content, err = lock.Marshal()
	if err != nil {
		return err
	}
	return replace(o.file, content)
}

// replace writes the file whole or not at all.
func replace(name string, content []byte) error {
	temporary := name + ".new"
	err := os.WriteFile(temporary, content, 0o644)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		_ = os.Remove(temporary) // The first error says what went wrong.
		return fmt.Errorf("write the lock file: %w", err)
	}
	return nil
}

// resolve is the resolver that asks APT.
func resolve(ctx context.Context, suite string, set lockfile.Set) (packages []lockfile.Package, err error) {
	directory, err := os.MkdirTemp("", "debian-lock-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for APT: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
	r, err := apt.New(ctx, directory, set.Architecture, suite)
	if err != nil {
		return nil, err
	}
	return r.Resolve(ctx, set.Requested, set.Closure)
}
