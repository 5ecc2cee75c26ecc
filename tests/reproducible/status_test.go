package reproducible_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/image/release"
)

// TestVersionOfCommit makes a repository in which git, left to itself, would
// describe a commit in another way than in a clone: with a short hash, and by a tag
// of somebody's own.
func TestVersionOfCommit(t *testing.T) {
	program, err := filepath.Abs("../../tools/bazel/status")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	run := func(name string, arguments ...string) string {
		t.Helper()
		command := exec.Command(name, arguments...)
		command.Dir = folder
		command.Env = []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + folder, "GIT_CEILING_DIRECTORIES=" + filepath.Dir(folder),
			"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		}
		output, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %q: %v\n%s", name, arguments, err, output)
		}
		return string(output)
	}
	version := func(pattern string) {
		t.Helper()
		status := run(program)
		got, err := release.Version([]byte(status))
		if err != nil || !regexp.MustCompile("^"+pattern+"$").MatchString(got) {
			t.Errorf("the version is %q, %v; want %s", got, err, pattern)
		}
		if strings.Count(status, "\n") != 1 {
			t.Errorf("the status has more than the version: %q", status)
		}
	}
	commit := func() { run("git", "commit", "--quiet", "--allow-empty", "--message=a") }

	version("dev")
	run("git", "init", "--quiet")
	run("git", "config", "core.abbrev", "5")
	commit()
	run("git", "tag", "mine")
	version("[0-9a-f]{16}")
	run("git", "tag", "v2026.11.30")
	version(`v2026\.11\.30`)
	commit()
	run("git", "tag", "vacation")
	version(`v2026\.11\.30-1-g[0-9a-f]{16}`)
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run("git", "add", "file")
	version(`v2026\.11\.30-1-g[0-9a-f]{16}-dirty`)
}
