package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"powercloud.unidatum.com/tools/oci/image"
	"powercloud.unidatum.com/tools/oci/layout"
)

// buildImage writes the layout of an image.
func buildImage(_ context.Context, arguments []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	var config image.Config
	var layerFiles list
	output := flags.String("output", "", "the `FOLDER` to write the image to")
	baseFolder := flags.String("base", "", "the `FOLDER` of the image that this one is built upon")
	flags.Var(&layerFiles, "layer", "a tar `FILE`; may be repeated")
	flags.StringVar(&config.OS, "os", "", "the operating `SYSTEM`")
	flags.StringVar(&config.Architecture, "architecture", "", "the `PROCESSOR`")
	flags.StringVar(&config.Variant, "variant", "", "the processor's `VARIANT`")
	flags.StringVar(&config.User, "user", "", "the `USER` that it runs as")
	flags.StringVar(&config.WorkingDir, "workdir", "", "the `FOLDER` that it runs in")
	files := configFiles(&config)
	for _, file := range files {
		flags.StringVar(&file.name, file.flag, "", file.usage)
	}
	if err := parse(flags, arguments, stderr, false, "output"); err != nil {
		return err
	}
	for _, file := range files {
		if file.name == "" {
			continue
		}
		content, err := readList(file.name)
		if err == nil {
			err = file.read(content)
		}
		if err != nil {
			return fmt.Errorf("-%s %s: %w", file.flag, file.name, err)
		}
	}
	var base v1.Image
	if *baseFolder != "" {
		var err error
		if base, err = openImage(*baseFolder); err != nil {
			return err
		}
	}
	var layers []image.Layer
	for _, name := range layerFiles {
		layer, err := image.OpenLayer(name)
		if err != nil {
			return err
		}
		layers = append(layers, layer)
	}
	built, err := image.Build(base, config, layers)
	if err != nil {
		return err
	}
	return layout.WriteImage(*output, built)
}

// configFile is a flag that names a file with a part of the configuration.
type configFile struct {
	flag, usage string
	name        string
	read        func(content []byte) error
}

// configFiles returns the flags that fill the configuration from files.
func configFiles(config *image.Config) []*configFile {
	into := func(to *[]string, parse func([]byte) ([]string, error)) func([]byte) error {
		return func(content []byte) (err error) {
			*to, err = parse(content)
			return err
		}
	}
	pairs := func(to *[]image.Pair) func([]byte) error {
		return func(content []byte) (err error) {
			*to, err = image.Pairs(content)
			return err
		}
	}
	created := func(content []byte) (err error) {
		config.Created, err = time.Parse(time.RFC3339, strings.TrimSpace(string(content)))
		return err
	}
	return []*configFile{
		{flag: "entrypoint", usage: "a `FILE` with the program and its arguments, one a line", read: into(&config.Entrypoint, image.Lines)},
		{flag: "cmd", usage: "a `FILE` with more arguments, one a line", read: into(&config.Cmd, image.Lines)},
		{flag: "env", usage: "a `FILE` with key=value lines", read: pairs(&config.Env)},
		{flag: "labels", usage: "a `FILE` with key=value lines", read: pairs(&config.Labels)},
		{flag: "annotations", usage: "a `FILE` with key=value lines", read: pairs(&config.Annotations)},
		{flag: "exposed-ports", usage: "a `FILE` with ports, separated by commas", read: into(&config.ExposedPorts, image.CommaList)},
		{flag: "volumes", usage: "a `FILE` with paths, separated by commas", read: into(&config.Volumes, image.CommaList)},
		{flag: "created", usage: "a `FILE` with a time as in RFC 3339", read: created},
	}
}

// readList reads a file with a list.
func readList(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, image.MaxList+1))
}

// openImage reads the layout of one image.
func openImage(folder string) (v1.Image, error) {
	content, err := layout.Open(folder)
	if err != nil {
		return nil, err
	}
	if content.Image == nil {
		return nil, fmt.Errorf("%s holds an index, where an image is wanted", folder)
	}
	return content.Image, nil
}

// buildIndex writes the layout of an index.
func buildIndex(_ context.Context, arguments []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("index", flag.ContinueOnError)
	output := flags.String("output", "", "the `FOLDER` to write the index to")
	if err := parse(flags, arguments, stderr, true, "output"); err != nil {
		return err
	}
	var images []v1.Image
	for _, folder := range flags.Args() {
		opened, err := openImage(folder)
		if err != nil {
			return err
		}
		images = append(images, opened)
	}
	index, err := layout.Join(images)
	if err != nil {
		return err
	}
	return layout.WriteIndex(*output, index)
}

// writeDigest writes the hash by which an image or index is named.
func writeDigest(_ context.Context, arguments []string, _, stderr io.Writer) error {
	flags := flag.NewFlagSet("digest", flag.ContinueOnError)
	folder := flags.String("image", "", "the image's `FOLDER`")
	output := flags.String("output", "", "the `FILE` to write")
	if err := parse(flags, arguments, stderr, false, "image", "output"); err != nil {
		return err
	}
	content, err := layout.Open(*folder)
	if err != nil {
		return err
	}
	return os.WriteFile(*output, []byte(content.Descriptor.Digest.String()+"\n"), 0o644)
}
