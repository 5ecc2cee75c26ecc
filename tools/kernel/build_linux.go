package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/tools/debian/root"
)

// An architecture is what differs between processors.
type architecture struct {
	// name is Debian's and Go's.
	name string
	// linux is the kernel's own name.
	linux string
	// prefix begins the names of the compiler and its tools.
	prefix string
	// target is what is built, and image where it is.
	target, image string
}

// On arm64, the kernel is an EFI program in its plain form only. Version 6.1 can
// pack it into one that unpacks itself (CONFIG_EFI_ZBOOT), but that one has the
// firmware load what it unpacked, which Secure Boot refuses: the signature is
// that of the whole.
var architectures = [...]architecture{
	{name: "amd64", linux: "x86_64", prefix: "x86_64-linux-gnu-", target: "bzImage", image: "arch/x86/boot/bzImage"},
	{name: "arm64", linux: "arm64", prefix: "aarch64-linux-gnu-", target: "Image", image: "arch/arm64/boot/Image"},
}

// compiler is the suffix of the compiler's version.
const compiler = "-12"

// Folders and files in the root.
const (
	work      = "/build"
	tree      = work + "/linux"
	allconfig = work + "/all.config"
	makefile  = work + "/quick.mk"
)

// unused are parts of the source that no build reads and that make up two fifths
// of its files. tar takes them as patterns, in which an asterisk stands for slashes too.
// Of processors and drivers that are never chosen, only the code is left out: Linux
// insists on their Kconfig files.
var unused = [...]string{
	"*/Documentation/*.rst",
	"*/Documentation/*.yaml",
	"*.dts",
	"*.dtsi",
	"*/arch/alpha/*.[chS]",
	"*/arch/ia64/*.[chS]",
	"*/arch/m68k/*.[chS]",
	"*/arch/mips/*.[chS]",
	"*/arch/parisc/*.[chS]",
	"*/arch/powerpc/*.[chS]",
	"*/arch/riscv/*.[chS]",
	"*/arch/s390/*.[chS]",
	"*/arch/sh/*.[chS]",
	"*/arch/sparc/*.[chS]",
	"*/arch/xtensa/*.[chS]",
	"*/drivers/gpu/drm/*/*.[ch]",
	"*/drivers/media/*.[ch]",
	"*/drivers/net/wireless/*.[ch]",
	"*/drivers/staging/*.[ch]",
	"*/sound/*.c",
	"*/tools/perf/*",
	"*/tools/testing/*",
}

// quick is a makefile that saves time.
//
//go:embed quick.mk
var quick []byte

// build does all the work.
func (o options) build(ctx context.Context) error {
	settings, err := os.ReadFile(o.settings)
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	if err := os.Mkdir(o.scratch, 0o700); err != nil {
		return fmt.Errorf("make the scratch folder: %w", err)
	}
	if err := root.Unpack(o.root, o.scratch); err != nil {
		return err
	}
	r, err := root.Open(o.scratch)
	if err != nil {
		return err
	}
	b := builder{root: r, architecture: o.architecture}
	if err := b.unpack(ctx, o.source); err != nil {
		return err
	}
	if err := os.WriteFile(r.Path(makefile), quick, 0o600); err != nil {
		return fmt.Errorf("write a makefile: %w", err)
	}
	if err := b.configure(ctx, settings); err != nil {
		return err
	}
	if o.configureOnly {
		return b.copy(".config", o.config)
	}
	if err := b.make(ctx, o.architecture.target); err != nil {
		return err
	}
	return errors.Join(
		b.copy(o.architecture.image, o.image),
		b.copy(".config", o.config),
		b.copy("System.map", o.symbols),
	)
}

// A builder builds in an opened root.
type builder struct {
	root         *root.Root
	architecture architecture
}

// unpack unpacks the kernel's source.
func (b builder) unpack(ctx context.Context, source string) (err error) {
	if err := os.MkdirAll(b.root.Path(tree), 0o700); err != nil {
		return fmt.Errorf("unpack the source: %w", err)
	}
	archive, err := os.Open(source)
	if err != nil {
		return fmt.Errorf("unpack the source: %w", err)
	}
	defer func() { err = errors.Join(err, archive.Close()) }()
	arguments := []string{"--extract", "--xz", "--file=-", "--directory=" + tree, "--strip-components=1", "--no-same-owner"}
	for _, pattern := range unused {
		arguments = append(arguments, "--exclude="+pattern)
	}
	command := b.root.Command(ctx, "/usr/bin/tar", arguments...)
	command.Stdin = archive
	return runQuietly(command)
}

// configure makes the kernel's configuration out of the settings alone: what they
// don't name is off unless Linux insists. Then it checks that every one took
// effect, and that another look at the configuration changes nothing.
func (b builder) configure(ctx context.Context, settings []byte) error {
	wanted, err := kconfig.ParseConfig(string(settings))
	if err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	if err := os.WriteFile(b.root.Path(allconfig), settings, 0o600); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	if err := b.make(ctx, "KCONFIG_ALLCONFIG="+allconfig, "allnoconfig"); err != nil {
		return err
	}
	first, err := b.readConfig()
	if err != nil {
		return err
	}
	config, err := kconfig.ParseConfig(first)
	if err != nil {
		return err
	}
	if err := errors.Join(kconfig.Check(wanted, config), kconfig.CheckBuiltIn(config)); err != nil {
		return err
	}
	if err := b.make(ctx, "olddefconfig"); err != nil {
		return err
	}
	second, err := b.readConfig()
	if err != nil {
		return err
	}
	if second != first {
		return errors.New("the configuration changes when Linux reads it again")
	}
	return nil
}

func (b builder) readConfig() (string, error) {
	content, err := os.ReadFile(b.root.Path(tree + "/.config"))
	if err != nil {
		return "", fmt.Errorf("read the configuration: %w", err)
	}
	return string(content), nil
}

// make runs the kernel's makefile. What would tell one build from another is
// fixed; the paths in the root are the same everywhere.
func (b builder) make(ctx context.Context, arguments ...string) error {
	command := b.root.Command(ctx, "/usr/bin/make", append([]string{
		"--silent",
		fmt.Sprintf("--jobs=%d", runtime.NumCPU()),
		"ARCH=" + b.architecture.linux,
		"CROSS_COMPILE=" + b.architecture.prefix,
		"CC=" + b.architecture.prefix + "gcc" + compiler,
		"HOSTCC=gcc" + compiler,
		"HOSTCXX=g++" + compiler,
		"KBUILD_BUILD_HOST=powercloud",
		"KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
		"KBUILD_BUILD_USER=powercloud",
		"KBUILD_BUILD_VERSION=1",
		"KCFLAGS=-ffile-prefix-map=" + tree + "/=",
		"KAFLAGS=-ffile-prefix-map=" + tree + "/=",
	}, arguments...)...)
	command.Dir = tree
	command.Env = append(command.Env, "MAKEFILES="+makefile)
	return runQuietly(command)
}

// copy copies a file of the kernel's tree out of the root.
func (b builder) copy(from, to string) error {
	source, err := os.Open(b.root.Path(filepath.Join(tree, from)))
	if err != nil {
		return fmt.Errorf("copy what was built: %w", err)
	}
	target, err := os.Create(to)
	if err != nil {
		return errors.Join(fmt.Errorf("copy what was built: %w", err), source.Close())
	}
	_, err = io.Copy(target, source)
	if err := errors.Join(err, source.Close(), target.Close()); err != nil {
		return fmt.Errorf("copy what was built: %w", err)
	}
	return nil
}

// shown is how many of the last lines of a failed program's output are shown.
const shown = 60

// runQuietly runs a program and shows what it printed only if it fails.
func runQuietly(command *exec.Cmd) error {
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if err == nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(output.String(), "\n"), "\n")
	lines = lines[max(0, len(lines)-shown):]
	return fmt.Errorf("%s failed: %w\n%s", command.Path, err, strings.Join(lines, "\n"))
}
