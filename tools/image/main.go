// Command image runs the steps from built programs to a release's files. Bazel
// calls it from rootfs and disk; each step reads files and writes one.
//
//	image initramfs -list FILE -output FILE
//	image efi -architecture ARCH -command-line FILE[,FILE] -stub FILE -kernel FILE -initramfs FILE [-status FILE] [-key FILE -certificate FILE] -output FILE
//	image disk -architecture ARCH -system FILE -output FILE
//	image gce -input FILE -output FILE
//	image vhd -input FILE -output FILE
//	image ext4 -packages FOLDER [-mebibytes COUNT] -output FILE
//	image compress -packages FOLDER -input FILE -output FILE
//	image release [-status FILE] -output FOLDER FILE...
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"

	"powercloud.unidatum.com/go/image/cloud"
	"powercloud.unidatum.com/go/image/disk"
	"powercloud.unidatum.com/go/image/ext4"
	"powercloud.unidatum.com/go/image/release"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

// steps are the steps by name.
var steps = map[string]func(ctx context.Context, arguments []string) error{
	"initramfs": makeInitramfs,
	"efi":       makeEFI,
	"disk":      makeDisk,
	"gce":       packWith(func(output, image *os.File) error { return cloud.PackGoogle(output, image) }),
	"vhd":       packWith(cloud.PackAzure),
	"ext4":      makeFileSystem,
	"compress":  compress,
	"release":   makeRelease,
}

// run does one step.
func run(ctx context.Context, arguments []string) error {
	if len(arguments) == 0 || steps[arguments[0]] == nil {
		return errors.New("it takes a step: initramfs, efi, disk, gce, vhd, ext4, compress or release")
	}
	if err := steps[arguments[0]](ctx, arguments[1:]); err != nil {
		return fmt.Errorf("%s: %w", arguments[0], err)
	}
	return nil
}

// options are a step's flags, each of which takes a value.
type options struct {
	values map[string]*string
	rest   []string
}

// get returns the value of a flag, or nothing.
func (o options) get(name string) string { return *o.values[name] }

// parse reads a step's arguments. Without arguments after the flags, unless the
// step takes files.
func parse(arguments, required, optional []string, files bool) (options, error) {
	flags := flag.NewFlagSet("", flag.ContinueOnError)
	o := options{values: map[string]*string{}}
	for _, name := range slices.Concat(required, optional) {
		o.values[name] = flags.String(name, "", "")
	}
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	for _, name := range required {
		if o.get(name) == "" {
			return o, fmt.Errorf("-%s is missing", name)
		}
	}
	o.rest = flags.Args()
	if files != (len(o.rest) > 0) {
		return o, errors.New("it takes files after the flags if it is a release, and nothing otherwise")
	}
	return o, nil
}

// version returns the version in the status file, or that of a build that is no
// release.
func (o options) version() (string, error) {
	if o.get("status") == "" {
		return "dev", nil
	}
	status, err := os.ReadFile(o.get("status"))
	if err != nil {
		return "", err
	}
	return release.Version(status)
}

// makeDisk writes a disk image.
func makeDisk(_ context.Context, arguments []string) (err error) {
	o, err := parse(arguments, []string{"architecture", "system", "output"}, nil, false)
	if err != nil {
		return err
	}
	system, err := os.ReadFile(o.get("system"))
	if err != nil {
		return err
	}
	if err := os.Setenv("SOURCE_DATE_EPOCH", disk.FileTime); err != nil {
		return err
	}
	output, err := os.Create(o.get("output"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, output.Close()) }()
	return disk.Write(output, o.get("architecture"), system)
}

// packWith returns the step that packs a disk image in a cloud's way.
func packWith(pack func(output, image *os.File) error) func(context.Context, []string) error {
	return func(_ context.Context, arguments []string) (err error) {
		o, err := parse(arguments, []string{"input", "output"}, nil, false)
		if err != nil {
			return err
		}
		image, err := os.Open(o.get("input"))
		if err != nil {
			return err
		}
		defer image.Close()
		output, err := os.Create(o.get("output"))
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, output.Close()) }()
		return pack(output, image)
	}
}

// makeFileSystem writes the file system that state volumes begin with.
func makeFileSystem(ctx context.Context, arguments []string) error {
	o, err := parse(arguments, []string{"packages", "output"}, []string{"mebibytes"}, false)
	if err != nil {
		return err
	}
	size := int64(ext4.Size)
	if o.get("mebibytes") != "" {
		count, err := strconv.ParseUint(o.get("mebibytes"), 10, 16)
		if err != nil {
			return fmt.Errorf("-mebibytes: %w", err)
		}
		size = int64(count) << 20
	}
	return ext4.Write(ctx, o.get("packages"), o.get("output"), size)
}

// compress writes a file in the .xz format.
func compress(ctx context.Context, arguments []string) error {
	o, err := parse(arguments, []string{"packages", "input", "output"}, nil, false)
	if err != nil {
		return err
	}
	return release.Compress(ctx, o.get("packages"), o.get("input"), o.get("output"))
}
