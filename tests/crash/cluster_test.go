//go:build linux && (amd64 || arm64)

package crash_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/pcctl"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/open"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

const passphrase = "a passphrase for crashes"

// places is where a cluster is stored: in directories within its own.
type places struct {
	directories []string
	// data is the K of the erasure-coded set that they are the parts of, or 0 when
	// each is a location.
	data int
}

func replicated() places { return places{directories: []string{"a", "b", "c"}} }
func coded() places      { return places{directories: []string{"a", "b", "c", "d"}, data: 2} }

// in returns the locations as in --repo, for a cluster in dir.
func (p places) in(dir string) string {
	var paths []string
	for _, name := range p.directories {
		paths = append(paths, filepath.Join(dir, name))
	}
	if p.data == 0 {
		return strings.Join(paths, ",")
	}
	return fmt.Sprintf("ec:%d:%s", p.data, strings.Join(paths, ";"))
}

// cluster is a directory with those of the locations, and pcctl's configuration in
// config.
type cluster struct {
	places
	dir      string
	files    string // the directory with the files that are stored
	recovery string // the recovery key: unlocking with it takes no time; empty to use the passphrase
}

// scratch makes an empty directory, in memory if there is a place for it. It
// clears away what a test left there that was killed itself.
func scratch(t *testing.T) string {
	const memory, prefix = "/dev/shm", "powercloud-crash-"
	dir, err := os.MkdirTemp(memory, prefix)
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	old, _ := filepath.Glob(filepath.Join(memory, prefix+"*"))
	for _, other := range old {
		if info, err := os.Stat(other); err == nil && time.Since(info.ModTime()) > time.Hour {
			os.RemoveAll(other)
		}
	}
	return dir
}

// environment is all that pcctl gets to know.
func (c cluster) environment() map[string]string {
	env := map[string]string{
		"POWERCLOUD_CONFIG": filepath.Join(c.dir, "config"),
		"POWERCLOUD_REPO":   c.in(c.dir),
		"HOME":              c.dir,
	}
	if c.recovery != "" {
		env["POWERCLOUD_RECOVERY_KEY"] = c.recovery
	} else {
		env["POWERCLOUD_PASSPHRASE"] = passphrase
	}
	return env
}

// commandLine is pcctl's, with the paths of files to store written in full.
func (c cluster) commandLine(args []string) []string {
	line := []string{"pcctl"}
	for _, arg := range args {
		if name, ok := strings.CutPrefix(arg, "files/"); ok {
			arg = filepath.Join(c.files, name)
		}
		line = append(line, arg)
	}
	return line
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

// pcctl runs a command to its end, in this process: that is faster than starting
// another, and nothing will interrupt it.
func (c cluster) pcctl(t *testing.T, args ...string) run {
	t.Helper()
	env := c.environment()
	var stdout, stderr bytes.Buffer
	status := pcctl.Run(t.Context(), pcctl.Env{
		Args:     c.commandLine(args),
		Stdout:   &stdout,
		Stderr:   &stderr,
		Getenv:   func(name string) string { return env[name] },
		Unsetenv: func(name string) error { delete(env, name); return nil },
	})
	return run{args, status, stdout.String(), stderr.String()}
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
		Args:  c.commandLine(args),
		Enter: func(call ptrace.Call) bool { return inside(call) && enter(call) },
	}
	for name, value := range c.environment() {
		opts.Env = append(opts.Env, name+"="+value)
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

// newCluster makes a cluster with a ready-made key header, because init takes
// long.
func newCluster(t *testing.T, at places) cluster {
	t.Helper()
	c := emptyCluster(t, scratch(t), "start", at)
	ready := keystest.First(t)
	specs, err := blob.ParseList(c.in(c.dir))
	if err != nil {
		t.Fatal(err)
	}
	locations, err := open.Options{}.All(specs)
	if err != nil {
		t.Fatal(err)
	}
	for _, location := range locations {
		if err := location.Put(t.Context(), blob.Header(), ready.Header); err != nil {
			t.Fatal(err)
		}
	}
	c.recovery = ready.Recovery.String()
	return c
}

// emptyCluster is a cluster before init, in a directory of top, with the files
// that are stored beside it.
func emptyCluster(t *testing.T, top, name string, at places) cluster {
	t.Helper()
	c := cluster{places: at, dir: filepath.Join(top, name), files: filepath.Join(top, "files")}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range contents() {
		writeFile(t, filepath.Join(c.files, name), content)
	}
	return c
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
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
	c.dir = dir
	return c
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
