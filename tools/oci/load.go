package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"

	"github.com/google/go-containerregistry/pkg/name"

	"powercloud.unidatum.com/tools/oci/archive"
	"powercloud.unidatum.com/tools/oci/layout"
)

// archiveFlags are the flags of what makes an archive.
type archiveFlags struct {
	folder, format, tags string
}

func (a *archiveFlags) add(flags *flag.FlagSet) {
	flags.StringVar(&a.folder, "image", "", "the image's `FOLDER`")
	flags.StringVar(&a.format, "format", archive.Docker, "the archive's `FORMAT`, docker or oci")
	flags.StringVar(&a.tags, "tags", "", "a `FILE` with names and tags, one a line")
}

// open reads what the archive is made of, and returns what writes it.
func (a *archiveFlags) open() (func(to io.Writer) error, error) {
	lines, err := readLines(a.tags)
	if err != nil {
		return nil, err
	}
	var tags []name.Tag
	for _, line := range lines {
		tag, err := name.NewTag(line)
		if err != nil {
			return nil, fmt.Errorf("the tag %q: %w", line, err)
		}
		tags = append(tags, tag)
	}
	content, err := layout.Open(a.folder)
	if err != nil {
		return nil, err
	}
	if err := archive.Check(content, a.format, tags); err != nil {
		return nil, err
	}
	return func(to io.Writer) error { return archive.Write(to, content, a.folder, a.format, tags) }, nil
}

// writeArchive writes a tar file that container engines can load.
func writeArchive(_ context.Context, arguments []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("archive", flag.ContinueOnError)
	var a archiveFlags
	a.add(flags)
	output := flags.String("output", "", "the `FILE` to write")
	if err := parse(flags, arguments, stderr, false, "image", "tags", "output"); err != nil {
		return err
	}
	write, err := a.open()
	if err != nil {
		return err
	}
	file, err := os.Create(*output)
	if err != nil {
		return fmt.Errorf("write an archive: %w", err)
	}
	return errors.Join(write(file), file.Close())
}

// load hands an image to a container engine on this machine.
func load(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	var a archiveFlags
	a.add(flags)
	loader := flags.String("loader", "", "the engine's `PROGRAM` (default docker or podman, whichever is there)")
	if err := parse(flags, arguments, stderr, false, "image", "tags"); err != nil {
		return err
	}
	write, err := a.open()
	if err != nil {
		return err
	}
	if *loader == "" {
		if *loader, err = findLoader(); err != nil {
			return err
		}
	}
	return feed(ctx, *loader, write, stdout, stderr)
}

// feed runs "LOADER load" with what write writes as its input.
func feed(ctx context.Context, loader string, write func(io.Writer) error, stdout, stderr io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	engine := exec.CommandContext(ctx, loader, "load")
	engine.Stdout, engine.Stderr = stdout, stderr
	input, err := engine.StdinPipe()
	if err != nil {
		return fmt.Errorf("start %s load: %w", loader, err)
	}
	if err := engine.Start(); err != nil {
		return fmt.Errorf("start %s load: %w", loader, err)
	}
	written := write(input)
	broken := written != nil && !errors.Is(written, syscall.EPIPE)
	if broken {
		cancel() // It must not take what it got so far for the whole.
	}
	closed := input.Close() // This tells it that there is no more.
	switch err := engine.Wait(); {
	case broken:
		return written
	case err != nil:
		return fmt.Errorf("%s load: %w", loader, err)
	case written != nil:
		return fmt.Errorf("%s load didn't read the whole image: %w", loader, written)
	}
	if closed != nil && !errors.Is(closed, os.ErrClosed) {
		return fmt.Errorf("end the input of %s load: %w", loader, closed)
	}
	return nil
}

// findLoader looks for a container engine.
func findLoader() (string, error) {
	for _, engine := range []string{"docker", "podman"} {
		if path, err := exec.LookPath(engine); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither docker nor podman is in PATH; install one of them to load the image into it")
}
