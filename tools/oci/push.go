package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"powercloud.unidatum.com/tools/oci/image"
	"powercloud.unidatum.com/tools/oci/layout"
)

// push pushes an image or an index to a registry: first under its hash, then,
// when all of it is there, under each tag. It logs in as `docker login` or
// `podman login` has set it up. It prints the name under which it can be pulled.
func push(ctx context.Context, arguments []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("push", flag.ContinueOnError)
	folder := flags.String("image", "", "the image's `FOLDER`")
	var repository string
	for _, flag := range []string{"repository", "r"} {
		flags.StringVar(&repository, flag, "", "the `REPOSITORY`, with its registry")
	}
	repositoryFile := flags.String("repository-file", "", "a `FILE` with the repository, unless -repository is given")
	tagFile := flags.String("tags", "", "a `FILE` with tags, one a line")
	var tags list
	for _, flag := range []string{"tag", "t"} {
		flags.Var(&tags, flag, "one more `TAG`; may be repeated")
	}
	if err := parse(flags, arguments, stderr, false, "image"); err != nil {
		return err
	}
	if repository == "" && *repositoryFile != "" {
		content, err := readList(*repositoryFile)
		if err != nil {
			return fmt.Errorf("read the repository's name: %w", err)
		}
		repository = strings.TrimSpace(string(content))
	}
	if *tagFile != "" {
		more, err := readLines(*tagFile)
		if err != nil {
			return err
		}
		tags = append(more, tags...)
	}
	target, refs, err := names(repository, tags)
	if err != nil {
		return err
	}
	content, err := layout.Open(*folder)
	if err != nil {
		return err
	}
	return pushContent(ctx, content, target, refs, stdout)
}

// readLines reads a file that has one item a line.
func readLines(file string) ([]string, error) {
	content, err := readList(file)
	if err != nil {
		return nil, err
	}
	lines, err := image.Lines(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return lines, nil
}

// names parses a repository's name and tags in it.
func names(repository string, tags []string) (name.Repository, []name.Tag, error) {
	if repository == "" {
		return name.Repository{}, nil, errors.New("no repository was given: add --repository REGISTRY/NAME")
	}
	if strings.ContainsAny(repository, "@") || strings.Contains(repository[strings.LastIndex(repository, "/")+1:], ":") {
		return name.Repository{}, nil, fmt.Errorf("the repository %q must have neither tag nor hash", repository)
	}
	target, err := name.NewRepository(repository, name.StrictValidation)
	if err != nil {
		return name.Repository{}, nil, fmt.Errorf("the repository %q: %w", repository, err)
	}
	var refs []name.Tag
	for _, tag := range tags {
		ref, err := name.NewTag(target.Name()+":"+tag, name.StrictValidation)
		if err != nil {
			return name.Repository{}, nil, fmt.Errorf("the tag %q: %w", tag, err)
		}
		refs = append(refs, ref)
	}
	return target, refs, nil
}

// pushContent pushes under the hash, then tags.
func pushContent(ctx context.Context, content layout.Content, target name.Repository, tags []name.Tag, stdout io.Writer) error {
	pusher, err := remote.NewPusher(remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain))
	if err != nil {
		return fmt.Errorf("prepare to push: %w", err)
	}
	digest := target.Digest(content.Descriptor.Digest.String())
	if err := pusher.Push(ctx, digest, content.Taggable()); err != nil {
		return fmt.Errorf("push %s: %w", digest, err)
	}
	for _, tag := range tags {
		if err := pusher.Push(ctx, tag, content.Taggable()); err != nil {
			return fmt.Errorf("tag %s as %s: %w", digest, tag.TagStr(), err)
		}
	}
	fmt.Fprintln(stdout, digest)
	return nil
}
