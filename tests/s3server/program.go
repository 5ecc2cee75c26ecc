package s3server

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"powercloud.unidatum.com/tools/lint"
)

// versitygw is set by Bazel to where it has put the program that it built.
var versitygw string

// The module that pins versitygw, below the root of the tree, and its package.
const (
	moduleDir  = "tests/s3server/versitygw"
	modulePath = "github.com/versity/versitygw/cmd/versitygw"
)

// program returns the path of versitygw. Without Bazel it is built once for all
// checkouts, with the go command, and kept in the user's cache.
func program() (string, error) {
	if versitygw != "" {
		return lint.Runfile(versitygw)
	}
	root, err := lint.Root()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, moduleDir)
	pins, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, "powercloud", fmt.Sprintf("versitygw-%x", sha256.Sum256(pins))[:len("versitygw-")+16])
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	return path, build(dir, path)
}

// build builds the program in a module. Others may build it at the same time.
func build(dir, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	scratch, err := os.MkdirTemp(filepath.Dir(path), "versitygw-build-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	built := filepath.Join(scratch, "versitygw")
	cmd := exec.Command("go", "build", "-trimpath", "-o", built, modulePath)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building versitygw in %s: %w\n%s", dir, err, output)
	}
	return os.Rename(built, path)
}
