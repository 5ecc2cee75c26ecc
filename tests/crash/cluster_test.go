//go:build linux && (amd64 || arm64)

package crash_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

const (
	passphrase = "a passphrase for crashes"
	repository = "a,b,c" // directories in the cluster's
)

// cluster is a directory with the three locations a, b and c, pcctl's
// configuration in config, and the files that are stored in files.
type cluster struct {
	dir      string
	recovery string // the recovery key: unlocking with it takes no time; empty to use the passphrase
}

// scratch makes an empty directory, in memory if there is a place for it.
func scratch(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "powercloud-crash-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// environment is all that pcctl gets to know.
func (c cluster) environment() []string {
	env := []string{"POWERCLOUD_CONFIG=" + filepath.Join(c.dir, "config"), "POWERCLOUD_REPO=" + repository, "HOME=" + c.dir}
	if c.recovery != "" {
		return append(env, "POWERCLOUD_RECOVERY_KEY="+c.recovery)
	}
	return append(env, "POWERCLOUD_PASSPHRASE="+passphrase)
}

// run is what one run of pcctl did.
type run struct {
	args           []string
	status         int
	stdout, stderr string
}

func (r run) String() string {
	return fmt.Sprintf("pcctl %s: exit status %d\n%s%s", strings.Join(r.args, " "), r.status, r.stdout, r.stderr)
}

// pcctl runs a command to its end.
func (c cluster) pcctl(t *testing.T, args ...string) run {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	cmd := &exec.Cmd{Path: self, Args: append([]string{"pcctl"}, args...), Dir: c.dir, Env: c.environment(), Stdout: &stdout, Stderr: &stderr}
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return run{args, cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// must runs a command that has to succeed.
func (c cluster) must(t *testing.T, args ...string) run {
	t.Helper()
	r := c.pcctl(t, args...)
	if r.status != 0 {
		t.Fatal(r)
	}
	return r
}

// traced runs a command with the calls that it makes in the cluster's
// directory handed to enter and, unless nil, exit.
func (c cluster) traced(t *testing.T, args []string, enter func(ptrace.Call) bool, exit func(ptrace.Call, int64, error)) (run, bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := func(call ptrace.Call) bool {
		return strings.HasPrefix(call.Path, c.dir+"/") || strings.HasPrefix(call.NewPath, c.dir+"/") || call.Path == c.dir
	}
	opts := ptrace.Options{
		Dir:   c.dir,
		Env:   c.environment(),
		Args:  append([]string{"pcctl"}, args...),
		Enter: func(call ptrace.Call) bool { return inside(call) && enter(call) },
	}
	if exit != nil {
		opts.Exit = func(call ptrace.Call, result int64, err error) {
			if inside(call) {
				exit(call, result, err)
			}
		}
	}
	result, err := ptrace.Run(self, opts)
	if err != nil {
		t.Fatalf("tracing pcctl %s: %v", strings.Join(args, " "), err)
	}
	return run{args, result.ExitCode, string(result.Stdout), string(result.Stderr)}, result.Killed
}

// newCluster makes a cluster, with a ready-made key header because init takes
// long, and the files that the scenarios store.
func newCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{dir: filepath.Join(scratch(t), "start")}
	for name, content := range contents() {
		c.write(t, name, content)
	}
	ready := keystest.First(t)
	for _, location := range strings.Split(repository, ",") {
		c.write(t, filepath.Join("..", location, "header"), ready.Header)
	}
	c.recovery = ready.Recovery.String()
	return c
}

func (c cluster) write(t *testing.T, name string, content []byte) {
	t.Helper()
	path := filepath.Join(c.dir, "files", name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// copyTo copies the cluster into a new directory.
func (c cluster) copyTo(t *testing.T, dir string) cluster {
	t.Helper()
	if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
		t.Fatal(err)
	}
	return cluster{dir, c.recovery}
}

// tree lists the cluster's files and their sizes, for messages.
func (c cluster) tree() string {
	var list strings.Builder
	err := filepath.WalkDir(c.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "%9d %s\n", info.Size(), strings.TrimPrefix(path, c.dir+"/"))
		return nil
	})
	if err != nil {
		fmt.Fprintln(&list, err)
	}
	return list.String()
}

// contents are the files that are stored, by name. Those that are called
// large have two chunks; large-2 shares its first with large-1.
var contents = sync.OnceValue(func() map[string][]byte {
	source := rand.NewChaCha8([32]byte{1})
	random := func(size int) []byte {
		data := make([]byte, size)
		source.Read(data)
		return data
	}
	files := map[string][]byte{
		"empty":    {},
		"small-1":  random(1000),
		"small-2":  random(3000),
		"large-1":  random(4<<20 + 1000),
		"tree/one": random(700),
		"tree/two": random(800),
	}
	files["large-2"] = append(files["large-1"][:4<<20:4<<20], random(2000)...)
	return files
})
