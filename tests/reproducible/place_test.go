package reproducible_test

import (
	"bytes"
	"os"
	"os/exec"
	"os/signal"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A place is where a Bazel of its own builds: a copy of the source tree, and an output
// base.
type place struct {
	workspace, outputBase string
}

// built returns where it puts a file that it builds.
func (p place) built(file string) string { return filepath.Join(p.workspace, "bazel-bin", file) }

// build builds on one processor less. What actions with a mnemonic that matches anew
// make isn't taken from the disk cache.
func (p place) build(t *testing.T, anew string, arguments ...string) {
	t.Helper()
	p.buildWith(t, nil, anew, arguments...)
}

// buildWith does so with more variables in the environment, "NAME=VALUE".
func (p place) buildWith(t *testing.T, variables []string, anew string, arguments ...string) {
	t.Helper()
	p.run(t, variables, p.workspace, "bazel", append([]string{"--batch", "--output_base=" + p.outputBase,
		"build", "--modify_execution_info=" + anew + "=+no-cache",
		"--noexperimental_run_validations", "--noshow_progress"}, arguments...)...)
}

// run runs a program in a folder, with the Go distribution's commands.
func (p place) run(t *testing.T, variables []string, folder, name string, arguments ...string) {
	t.Helper()
	account, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	goCommand, err := filepath.EvalSymlinks(runfile(t, os.Getenv("GO")))
	if err != nil {
		t.Fatal(err)
	}
	// Bazel ends a test that takes too long in this way. What it built must not
	// stay behind.
	ctx, stop := signal.NotifyContext(t.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = folder
	command.Env = append([]string{
		"HOME=" + account.HomeDir, // of the caches
		"PATH=" + filepath.Dir(goCommand) + ":" + os.Getenv("PATH"),
	}, variables...)
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := startOnFewer(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%s in the second build failed: %v\n%s", name, err, &output)
	}
}

// releaseVersion returns the version in the names of a release's files, which are
// PRODUCT-VERSION-REST.
func releaseVersion(t *testing.T, folder string) string {
	t.Helper()
	const rest = "-amd64.efi"
	found, err := filepath.Glob(filepath.Join(folder, "*"+rest))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 {
		t.Fatalf("the release has %d EFI files for amd64: %q", len(found), found)
	}
	_, version, ok := strings.Cut(strings.TrimSuffix(filepath.Base(found[0]), rest), "-")
	if !ok || version == "" {
		t.Fatalf("%s has no version in its name", found[0])
	}
	return version
}

func TestReleaseVersion(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"powercloud-v2026.11.30-1-g0123456789abcdef-dirty-amd64.efi", "powercloud-v2026.11.30-1-g0123456789abcdef-dirty-arm64.efi", "SHA256SUMS"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := releaseVersion(t, folder); got != "v2026.11.30-1-g0123456789abcdef-dirty" {
		t.Errorf("it is %q", got)
	}
}

// stamping returns what makes a copy of the source tree, which has no history, stamp a
// version into what it builds; nothing for that of a build without --config=release.
func stamping(t *testing.T, workspace, version string) []string {
	t.Helper()
	if version == "dev" {
		return nil
	}
	path := filepath.Join(workspace, "tools", "bazel", "status")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho STABLE_VERSION "+version+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return []string{"--stamp", "--workspace_status_command=" + path}
}

func TestStamping(t *testing.T) {
	workspace := t.TempDir()
	if got := stamping(t, workspace, "dev"); got != nil {
		t.Errorf("without a version it is %q", got)
	}
	if err := os.MkdirAll(filepath.Join(workspace, "tools", "bazel"), 0o700); err != nil {
		t.Fatal(err)
	}
	got := stamping(t, workspace, "v2026.11.30")
	if len(got) != 2 || got[0] != "--stamp" {
		t.Fatalf("it is %q", got)
	}
	printed, err := exec.Command(strings.TrimPrefix(got[1], "--workspace_status_command=")).Output()
	if err != nil || string(printed) != "STABLE_VERSION v2026.11.30\n" {
		t.Errorf("the status is %q, %v", printed, err)
	}
}

// TestStartOnFewer compares what a program that is started so counts with what the
// test has, before and after.
func TestStartOnFewer(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	count := func() int {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Fatal(err)
		}
		return set.Count()
	}
	before := count()
	var printed bytes.Buffer
	command := exec.Command("nproc")
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	command.Stdout = &printed
	if err := startOnFewer(command); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(printed.String()), strconv.Itoa(max(1, before-1)); got != want {
		t.Errorf("it has %s processors, want %s of %d", got, want, before)
	}
	if after := count(); after != before {
		t.Errorf("the test has %d processors afterwards instead of %d", after, before)
	}
}
