package machine

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"powercloud.unidatum.com/tests/machine/qmp"
)

// What executes a machine's instructions.
const (
	kvm = "kvm" // The processor itself.
	tcg = "tcg" // QEMU, by translating them.
)

// probeTime is how long the firmware may take to say something by KVM; it takes
// a second.
const probeTime = 20 * time.Second

// Accelerator returns "kvm" or "tcg": what machines of this host's own
// architecture run by. A device /dev/kvm says little, since some can't run a
// firmware. So the first caller runs one, and what came of it is kept until the
// host starts again or QEMU is another one.
func Accelerator(ctx context.Context) (string, error) {
	t, err := findTools()
	if err != nil {
		return "", err
	}
	return accelerator(ctx, Config{Architecture: AMD64}, t)
}

func accelerator(ctx context.Context, config Config, t tools) (string, error) {
	if !config.Architecture.native() || config.Architecture != AMD64 {
		return tcg, nil // QEMU's own packages here are for amd64.
	}
	if config.CountInstructions {
		return tcg, nil // Only what is translated can be counted.
	}
	switch chosen := os.Getenv("MACHINE_ACCELERATOR"); chosen {
	case kvm, tcg:
		return chosen, nil
	case "":
	default:
		return "", fmt.Errorf("MACHINE_ACCELERATOR is %q: it must be kvm or tcg", chosen)
	}
	device, err := os.OpenFile("/dev/kvm", os.O_RDWR, 0)
	if err != nil {
		return tcg, nil // There is nothing to find out.
	}
	_ = device.Close() // It was only opened.
	return findOut(ctx, t, cacheFolders())
}

// findOut looks into the folders for what was found out earlier, and else finds
// it out and keeps it in the first folder that takes it.
func findOut(ctx context.Context, t tools, folders []string) (string, error) {
	key, err := probeKey(t)
	if err != nil {
		return "", err
	}
	for _, folder := range folders {
		switch content, _ := os.ReadFile(filepath.Join(folder, key)); string(content) {
		case kvm, tcg:
			return string(content), nil
		}
	}
	result := tcg
	if err := probe(ctx, t); err == nil {
		result = kvm
	} else if ctx.Err() != nil {
		return "", err
	}
	for _, folder := range folders {
		if os.WriteFile(filepath.Join(folder, key), []byte(result), 0o600) == nil {
			break
		}
	}
	return result, nil
}

// probeKey names what the answer depends on.
func probeKey(t tools) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("find out when the host started: %w", err)
	}
	hash := sha256.New()
	for _, name := range []string{AMD64.emulator(), "usr/share/OVMF/OVMF_CODE_4M.fd"} {
		file, err := os.Open(t.path(name))
		if err != nil {
			return "", fmt.Errorf("look at QEMU: %w", err)
		}
		_, err = io.Copy(hash, file)
		if err := errors.Join(err, file.Close()); err != nil {
			return "", fmt.Errorf("look at QEMU: %w", err)
		}
	}
	return fmt.Sprintf("accelerator-%s-%x", strings.TrimSpace(string(boot)), hash.Sum(nil)[:8]), nil
}

// cacheFolders are where the answer is kept: in the user's cache, or, where a
// sandbox allows no writing there, among temporary files. Only folders of this
// user count.
func cacheFolders() []string {
	candidates := []string{filepath.Join(os.TempDir(), fmt.Sprintf("powercloud-machine-%d", os.Getuid()))}
	if os.Getenv("TEST_SRCDIR") != "" {
		// Bazel gives each test a folder for temporary files of its own.
		candidates[0] = fmt.Sprintf("/tmp/powercloud-machine-%d", os.Getuid())
	}
	if cache, err := os.UserCacheDir(); err == nil {
		candidates = append([]string{filepath.Join(cache, "powercloud", "machine")}, candidates...)
	}
	var folders []string
	for _, folder := range candidates {
		_ = os.MkdirAll(folder, 0o700) // Whether it is there is asked next.
		info, err := os.Lstat(folder)
		if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
			continue
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) == os.Getuid() {
			folders = append(folders, folder)
		}
	}
	return folders
}

// probe returns nil if KVM runs the firmware up to where it looks for something
// to start.
func probe(ctx context.Context, t tools) (err error) {
	folder, err := os.MkdirTemp("", "machine-probe-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, errors.New("the firmware said nothing"))
	defer cancel()
	config, err := Config{Name: "probe"}.complete()
	if err != nil {
		return err
	}
	if err := prepare(config, t, folder); err != nil {
		return err
	}
	r, err := launch(ctx, config, t, folder, kvm)
	if err != nil {
		return err
	}
	defer r.end()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		// QEMU stops a machine whose instructions KVM can't execute.
		if _, err := r.monitor.Wait(ctx, qmp.Named("STOP")); err == nil {
			stop(errors.New("KVM can't execute the firmware"))
		}
	}()
	console := newConsole(config.Name, io.Discard)
	console.begin(r.console)
	go console.follow(r.console)
	if err := r.monitor.Execute(ctx, "cont", nil, nil); err != nil {
		return err
	}
	_, err = console.Find(ctx, regexp.MustCompile(`BdsDxe|UEFI`))
	return err
}
