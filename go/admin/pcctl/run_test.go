package pcctl

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/admin/prompt"
	"powercloud.unidatum.com/go/admin/session"
	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/storetest"
)

// trial runs pcctl in this process over a cluster in directories.
type trial struct {
	t   *testing.T
	bed *storetest.Testbed
	// environment is what pcctl finds, and may remove.
	environment    map[string]string
	terminal       prompt.Terminal
	stdin          io.Reader
	stdout, stderr bytes.Buffer
	// config is the configuration directory, if there is one.
	config string
	// show draws progress bars.
	show bool
	// output, when set, takes the place of stdout.
	output io.Writer
}

func newTrial(t *testing.T) *trial {
	t.Helper()
	bed := storetest.New(t, 3)
	bed.Init()
	return &trial{t: t, bed: bed, environment: map[string]string{
		"POWERCLOUD_REPO":         strings.Join(bed.Paths, ","),
		"POWERCLOUD_RECOVERY_KEY": bed.Cluster.Recovery.String(),
	}}
}

// run returns the exit status, and keeps the output.
func (s *trial) run(ctx context.Context, args ...string) int {
	s.t.Helper()
	s.stdout.Reset()
	s.stderr.Reset()
	environment := map[string]string{}
	for name, value := range s.environment {
		environment[name] = value
	}
	env := Env{
		Args: append([]string{"pcctl"}, args...), Stdin: s.stdin, Stdout: &s.stdout, Stderr: &s.stderr,
		Getenv:       func(name string) string { return environment[name] },
		Unsetenv:     func(name string) error { delete(environment, name); return nil },
		Terminal:     s.terminal,
		ShowProgress: s.show,
		ConfigDir:    s.config,
		Now:          func() time.Time { return s.bed.Now },
		Zone:         time.UTC,
	}
	if s.output != nil {
		env.Stdout = s.output
	}
	status := Run(ctx, env)
	for name := range environment {
		if strings.Contains(name, "PASSPHRASE") || strings.Contains(name, "KEY") {
			s.t.Errorf("%s is still in the environment", name)
		}
	}
	return status
}

// want runs a command that must end with a status.
func (s *trial) want(status int, args ...string) {
	s.t.Helper()
	if got := s.run(s.t.Context(), args...); got != status {
		s.t.Fatalf("pcctl %q: status %d, not %d\n%s%s", args, got, status, s.stdout.String(), s.stderr.String())
	}
}

func (s *trial) wantStdout(want string) {
	s.t.Helper()
	if s.stdout.String() != want {
		s.t.Errorf("standard output:\n%s\nwant:\n%s", s.stdout.String(), want)
	}
}

func (s *trial) wantStderr(want string) {
	s.t.Helper()
	if s.stderr.String() != want {
		s.t.Errorf("standard error:\n%s\nwant:\n%s", s.stderr.String(), want)
	}
}

// file makes a file and returns its path.
func (s *trial) file(name, content string) string {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return path
}

func TestList(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "docs/a", s.file("a", "hello"))
	s.wantStdout("stored docs/a (5 bytes, 1 chunks)\n")
	s.want(0, "put", "b", s.file("b", ""))
	s.wantStdout("stored b (0 bytes, 0 chunks)\n")
	s.want(0, "ls")
	s.wantStdout("           0  2026-01-02 03:04  b\n           5  2026-01-02 03:04  docs/a\n")
	s.want(0, "ls", "--json", "docs/")
	s.wantStdout(`{"name":"docs/a","bytes":5,"chunks":1,"modified":"2026-01-02T03:04:05Z"}` + "\n")
	s.want(0, "ls", "nothing")
	s.wantStdout("")
}

// An answer is what the user types at the prompts.
type answer string

func (a answer) ReadSecret(context.Context, string) ([]byte, error) { return []byte(a), nil }

func TestPassphraseFromTheTerminal(t *testing.T) {
	s := newTrial(t)
	delete(s.environment, "POWERCLOUD_RECOVERY_KEY")
	s.want(1, "ls")
	s.wantStderr("pcctl: no terminal for passphrase; set POWERCLOUD_PASSPHRASE (and POWERCLOUD_NEW_PASSPHRASE for rotate)\n")
	s.terminal = answer(s.bed.Cluster.Passphrase)
	s.want(0, "ls")
	s.terminal = answer("something else")
	s.want(1, "ls")
	s.wantStderr("pcctl: keys: wrong passphrase or recovery key\n")
	// The recovery key wins, also when it is wrong.
	s.terminal = answer(s.bed.Cluster.Passphrase)
	s.environment["POWERCLOUD_RECOVERY_KEY"] = "AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA-AAAA"
	s.want(1, "ls")
}

func TestDamageIsReported(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	s.bed.Spoil(1)
	s.want(1, "check")
	if !strings.Contains(s.stdout.String(), "unreachable: ") || strings.Count(s.stderr.String(), "\n") != 1 {
		t.Errorf("%s%s", s.stdout.String(), s.stderr.String())
	}
	s.want(1, "gc")
	if !strings.HasPrefix(s.stderr.String(), "pcctl: store: gc needs every backend, and "+s.bed.Paths[1]+" is unreachable") {
		t.Error(s.stderr.String())
	}
	s.want(0, "put", "b", s.file("b", "hello"))
	s.want(1, "--quorum", "3", "put", "b", s.file("b", "hello"))
	if !strings.Contains(s.stderr.String(), "2/3 backends succeeded, need 3") {
		t.Error(s.stderr.String())
	}
}

func TestCorruptAndDamaged(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	s.bed.Alter(s.bed.Blobs(0, blob.KindChunk)...)
	s.want(1, "check", "--verify")
	if !strings.HasSuffix(s.stderr.String(), "pcctl: locations differ; run 'pcctl repair'\n") {
		t.Error(s.stderr.String())
	}
	s.want(0, "repair", "--verify")
	s.want(0, "check", "--verify", "--json")
	if !strings.Contains(s.stdout.String(), `"damaged":[],"different_header":[]}`) {
		t.Error(s.stdout.String())
	}
	for location := range s.bed.Paths {
		s.bed.Alter(s.bed.Blobs(location, blob.KindChunk)...)
	}
	s.want(1, "check", "--verify")
	if !strings.Contains(s.stdout.String(), "\nDAMAGED: a\n") {
		t.Error(s.stdout.String())
	}
	target := s.file("target", "old")
	s.want(1, "get", "a", target)
	if content, err := os.ReadFile(target); string(content) != "old" {
		t.Errorf("target holds %q, %v", content, err)
	}
	s.want(1, "get", "a")
	s.wantStdout("")
}

func TestWarningOfAnotherClustersHeader(t *testing.T) {
	s := newTrial(t)
	s.bed.WriteHeader(2, keystest.Second(t).Header)
	s.want(1, "check")
	if !strings.Contains(s.stdout.String(), "\nWARNING: "+s.bed.Paths[2]+" has a different cluster header\n") {
		t.Error(s.stdout.String())
	}
}

// TestMessagesHaveNothingThatATerminalActsOn: a location or a file's name could
// otherwise draw over what is on it.
func TestMessagesHaveNothingThatATerminalActsOn(t *testing.T) {
	s := newTrial(t)
	s.want(1, "put", "x", "absent\x1b[2J\u202e")
	s.wantStderr("pcctl: stat absent\\x1b[2J\\u202e: no such file or directory\n")
	dir := filepath.Dir(s.file("a", "a"))
	if err := os.Symlink("a", filepath.Join(dir, "link\nto\x1b")); err != nil {
		t.Skip(err)
	}
	s.want(0, "put", "x", dir)
	s.wantStderr("warning: " + dir + "/link\\nto\\x1b is a symbolic link: not stored\n")
	s.want(1, "get", "x/a", "y\x1b", filepath.Join(dir, "out")+"/")
	s.wantStderr("pcctl: y\\x1b: no such object\npcctl: 1 of 2 objects could not be fetched\n")
}

func TestCollection(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	s.want(0, "rm", "a")
	s.wantStdout("")
	s.want(0, "gc")
	s.wantStdout("0 chunks in use, deleted 0, 1 unreferenced waiting out the 24h0m0s grace period\n")
	s.bed.Now = s.bed.Now.Add(25 * time.Hour)
	s.want(0, "gc", "--dry-run")
	s.wantStdout("0 chunks in use, would delete 1, 0 unreferenced waiting out the 24h0m0s grace period\n")
	s.want(0, "gc", "--dry-run", "--json", "--grace=30h")
	s.wantStdout(`{"chunks_in_use":0,"deleted":0,"would_delete":0,"waiting":1,"grace":"30h0m0s","dry_run":true}` + "\n")
	s.want(0, "gc", "--json")
	s.wantStdout(`{"chunks_in_use":0,"deleted":1,"would_delete":0,"waiting":0,"grace":"24h0m0s","dry_run":false}` + "\n")
	s.want(1, "get", "a")
	s.want(1, "rm", "a")
}

func TestCollectionOfTombstones(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	s.want(0, "rm", "a")
	s.want(0, "gc", "--tombstones")
	s.wantStdout("1 tombstones, deleted 0, 0 not at every location, 1 waiting out the 24h0m0s grace period\n")
	s.bed.Now = s.bed.Now.Add(25 * time.Hour)
	s.want(0, "gc", "--tombstones", "--dry-run")
	s.wantStdout("due         2026-01-02 03:04  a\n1 tombstones, would delete 1, 0 not at every location, 0 waiting out the 24h0m0s grace period\n")
	s.want(0, "gc", "--tombstones", "--dry-run", "--json", "--grace=30h")
	s.wantStdout(`{"tombstones":1,"deleted":0,"would_delete":0,"incomplete":0,"waiting":1,"grace":"30h0m0s","dry_run":true,` +
		`"list":[{"name":"a","removed":"2026-01-02T03:04:05.000000001Z","state":"waiting"}]}` + "\n")
	s.want(0, "gc", "--tombstones", "--json")
	s.wantStdout(`{"tombstones":1,"deleted":1,"would_delete":0,"incomplete":0,"waiting":0,"grace":"24h0m0s","dry_run":false}` + "\n")
	s.want(0, "check")
	s.want(1, "rm", "a")
	s.want(0, "put", "a", s.file("a", "hello"))
}

// An interruption in the middle of reading standard input, which gives nothing
// more, ends the command at once and stores nothing.
func TestInterruptedPut(t *testing.T) {
	s := newTrial(t)
	pipe, feed := io.Pipe()
	defer feed.Close()
	s.stdin = pipe
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		io.WriteString(feed, "some") // Returns when it was read.
		cancel(errInterrupted)
	}()
	if status := s.run(ctx, "put", "a", "-"); status != 1 {
		t.Errorf("status %d", status)
	}
	s.wantStderr("pcctl: interrupted\n")
	s.stdin = nil
	s.want(1, "get", "a")
	s.want(0, "check")
}

// cancelling is an output whose first write interrupts the command, and that
// takes nothing.
type cancelling struct{ cancel func() }

func (c cancelling) Write([]byte) (int, error) {
	c.cancel()
	select {}
}

func TestInterruptedGet(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	ctx, cancel := context.WithCancelCause(t.Context())
	s.output = cancelling{func() { cancel(errInterrupted) }}
	if status := s.run(ctx, "get", "a"); status != 1 {
		t.Errorf("status %d", status)
	}
	s.wantStderr("pcctl: interrupted\n")
}

// An interruption that comes before a file is fetched leaves nothing of it.
func TestInterruptedGetLeavesNoFile(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", strings.Repeat("hello", 1<<20)))
	ctx, cancel := context.WithCancelCause(t.Context())
	dir := t.TempDir()
	s.show = true
	status := s.runDrawing(ctx, cancel, "get", "a", filepath.Join(dir, "file"))
	entries, err := os.ReadDir(dir)
	if status != 1 || err != nil || len(entries) != 0 {
		t.Errorf("status %d; left: %v, %v", status, entries, err)
	}
}

// runDrawing interrupts the command when it first draws a progress bar.
func (s *trial) runDrawing(ctx context.Context, cancel context.CancelCauseFunc, args ...string) int {
	s.t.Helper()
	return Run(ctx, Env{
		Args: append([]string{"pcctl"}, args...), Stdout: &s.stdout,
		Stderr:       writerFunc(func(p []byte) (int, error) { cancel(errInterrupted); return len(p), nil }),
		Getenv:       func(name string) string { return s.environment[name] },
		ShowProgress: true,
	})
}

type writerFunc func([]byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }

func TestOutputThatFails(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	s.output = writerFunc(func([]byte) (int, error) { return 0, errors.New("disk full") })
	for _, args := range [][]string{
		{"get", "a"}, {"ls"}, {"ls", "--json"}, {"check"}, {"check", "--json"}, {"gc"}, {"version"},
		{"put", "b", s.file("b", "hello")}, {"get", "--json", "a", filepath.Join(t.TempDir(), "x")},
		{"completion", "bash"},
	} {
		if status := s.run(t.Context(), args...); status != 1 || !strings.Contains(s.stderr.String(), "disk full") {
			t.Errorf("pcctl %q: status %d, %s", args, status, s.stderr.String())
		}
	}
}

func TestProgressIsGoneBeforeResults(t *testing.T) {
	s := newTrial(t)
	s.show = true
	path := s.file("a", strings.Repeat("hello", 1<<20))
	s.want(0, "put", "more/", s.file("b", "b"), s.file("c", "c"))
	for _, args := range [][]string{
		{"put", "a", path}, {"get", "a", filepath.Join(t.TempDir(), "a")}, {"check", "--verify"}, {"repair"},
	} {
		s.want(0, args...)
		drawn := s.stderr.String()
		if !strings.Contains(drawn, "%") || !strings.HasSuffix(drawn, "\x1b[2K\r") {
			t.Errorf("pcctl %q drew %q", args, drawn)
		}
	}
	s.show = false
	s.want(0, "put", "a", path)
	s.wantStderr("")
}

// TestSystemObjects: users neither see nor change the system's own objects, unless
// they ask to see them.
func TestSystemObjects(t *testing.T) {
	s := newTrial(t)
	s.want(0, "put", "a", s.file("a", "hello"))
	const name = ".powercloud/registry/x"
	objects := session.SystemObjects{Store: s.bed.Open()}
	if err := objects.Write(t.Context(), name, []byte("system")); err != nil {
		t.Fatal(err)
	}
	s.want(0, "ls")
	s.wantStdout("           5  2026-01-02 03:04  a\n")
	s.want(0, "ls", ".powercloud/")
	s.wantStdout("           6  2026-01-02 03:04  .powercloud/registry/x\n")
	s.want(0, "get", name)
	s.wantStdout("system")
	out := t.TempDir()
	s.want(0, "get", "/", out)
	entries, err := os.ReadDir(out)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("fetched %v, %v", entries, err)
	}
	dir := filepath.Join(t.TempDir(), ".powercloud")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"put", name, s.file("b", "forged")},
		{"put", ".powercloud", dir},
		{"put", ".powercloud/", s.file("registry", "forged")},
		{"put", "/", dir},
		{"rm", name},
	} {
		s.want(1, args...)
		if !strings.HasSuffix(s.stderr.String(), "the names below .powercloud/ are the system's own\n") {
			t.Errorf("pcctl %q: %s", args, s.stderr.String())
		}
	}
	s.want(0, "put", ".powercloudy", s.file("c", ""))
	s.want(0, "get", name)
	s.wantStdout("system")
}
