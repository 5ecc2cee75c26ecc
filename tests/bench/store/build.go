package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// peersDir holds a Go module for each peer, which pins its version.
const peersDir = "tests/bench/peers"

// builder makes the programs that are measured.
type builder struct {
	opts options
	log  func(string, ...any)
}

// pcctl returns pcctl's binary.
func (b builder) pcctl(ctx context.Context) (string, error) {
	if b.opts.pcctl != "" {
		return filepath.Abs(b.opts.pcctl)
	}
	path := filepath.Join(b.opts.cache, "pcctl")
	return path, b.build(ctx, b.opts.workspace, path, "./go/cmd/pcctl")
}

// peer returns a peer's binary. It is built again when its module file has
// changed.
func (b builder) peer(ctx context.Context, name string) (string, error) {
	packages := map[string]string{
		nameRestic: "github.com/restic/restic/cmd/restic",
		nameKopia:  "github.com/kopia/kopia",
		nameRclone: "github.com/rclone/rclone",
	}
	dir := filepath.Join(b.opts.workspace, peersDir, name)
	pins, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(b.opts.cache, fmt.Sprintf("%s-%x", name, sha256.Sum256(pins))[:len(name)+13])
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, b.build(ctx, dir, path, packages[name])
}

// build runs the go command in a module. It inherits the environment, because
// it may have to fetch modules.
func (b builder) build(ctx context.Context, dir, output, pkg string) error {
	if err := os.MkdirAll(b.opts.cache, 0o755); err != nil {
		return err
	}
	b.log("building %s", pkg)
	cmd := exec.CommandContext(ctx, b.opts.goTool, "build", "-trimpath", "-o", output, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s in %s: %w\n%s", pkg, dir, err, out)
	}
	return nil
}
