package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// editedPackage is the part of pcd that is edited, a folder of the checkout.
	editedPackage = "go/node/daemon"
	// editedFile is a file of it, and editedText what is in it once and becomes
	// another text, inside of a string.
	editedFile = "daemon.go"
	editedText = "pcd begins"
	// imageTarget is what is built again, and imageFile where it then is, below
	// Bazel's folder of outputs.
	imageTarget = "//disk:powercloud_disk_amd64"
	imageFile   = "disk/powercloud-amd64.img"
)

// measureRebuilds edits pcd once a round, and returns how long each new image took.
func measureRebuilds(ctx context.Context, opts options, log func(string, ...any)) (_ []time.Duration, err error) {
	if err := os.MkdirAll(opts.cache, 0o755); err != nil {
		return nil, err
	}
	overlay, err := os.MkdirTemp(opts.cache, "rebuild-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(overlay)) }()
	b := rebuilder{opts: opts, overlay: overlay}
	if err := b.copyPackage(); err != nil {
		return nil, fmt.Errorf("copy %s: %w", editedPackage, err)
	}
	log("building what is built again later")
	if _, err := b.build(ctx); err != nil {
		return nil, err
	}
	before, err := b.imageSum(ctx)
	if err != nil {
		return nil, err
	}
	var list []time.Duration
	for round := range opts.rounds {
		log("round %d: editing and building", round+1)
		// A text that was never built, so that no cache has what is made of it.
		if err := b.edit(fmt.Sprintf("%s (edit %d)", editedText, time.Now().UnixNano())); err != nil {
			return nil, fmt.Errorf("edit %s: %w", editedPackage, err)
		}
		took, err := b.build(ctx)
		if err != nil {
			return nil, err
		}
		after, err := b.imageSum(ctx)
		if err != nil {
			return nil, err
		}
		if after == before {
			return nil, errors.New("the edit changed nothing of the image")
		}
		before = after
		list = append(list, took)
	}
	return list, nil
}

// rebuilder builds with an edited copy of a package.
type rebuilder struct {
	opts options
	// overlay is the folder where Bazel looks for packages first.
	overlay string
}

// copyPackage copies the package into the overlay. It has no folders below it.
func (b rebuilder) copyPackage() error {
	from, to := filepath.Join(b.opts.workspace, editedPackage), filepath.Join(b.overlay, editedPackage)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			return fmt.Errorf("there is a folder %s in it, whose package would be missed", entry.Name())
		}
		content, err := os.ReadFile(filepath.Join(from, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// edit puts another text into the copy, in place of the one in the checkout.
func (b rebuilder) edit(text string) error {
	content, err := os.ReadFile(filepath.Join(b.opts.workspace, editedPackage, editedFile))
	if err != nil {
		return err
	}
	edited, err := replaceOnce(content, editedText, text)
	if err != nil {
		return fmt.Errorf("%s: %w", editedFile, err)
	}
	return os.WriteFile(filepath.Join(b.overlay, editedPackage, editedFile), edited, 0o644)
}

// replaceOnce replaces a text that is there exactly once.
func replaceOnce(content []byte, text, other string) ([]byte, error) {
	if n := bytes.Count(content, []byte(text)); n != 1 {
		return nil, fmt.Errorf("%q is there %d times instead of once", text, n)
	}
	return bytes.Replace(content, []byte(text), []byte(other), 1), nil
}

// build builds the image, and returns how long that took.
func (b rebuilder) build(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	_, err := b.run(ctx, "build", "--noshow_progress", imageTarget)
	return time.Since(began), err
}

// imageSum returns the SHA-256 of the image that was built last.
func (b rebuilder) imageSum(ctx context.Context) (sum [sha256.Size]byte, err error) {
	folder, err := b.run(ctx, "info", "bazel-bin")
	if err != nil {
		return sum, err
	}
	file, err := os.Open(filepath.Join(strings.TrimSpace(folder), imageFile))
	if err != nil {
		return sum, fmt.Errorf("look at the image: %w", err)
	}
	defer func() { _ = file.Close() }() // It was only read.
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return sum, fmt.Errorf("look at the image: %w", err)
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}

// run runs Bazel in the checkout, and returns what it printed on standard output. It
// inherits the environment, as it would from a shell.
func (b rebuilder) run(ctx context.Context, command string, args ...string) (string, error) {
	args = append([]string{command, "--package_path=" + b.overlay + ":%workspace%"}, args...)
	cmd := exec.CommandContext(ctx, b.opts.bazel, args...)
	cmd.Dir = b.opts.workspace
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", b.opts.bazel, strings.Join(args, " "), err, &stderr)
	}
	return stdout.String(), nil
}
