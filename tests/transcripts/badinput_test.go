package transcripts

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"powercloud.unidatum.com/go/admin/pcctl"
	"powercloud.unidatum.com/go/keys/keystest"
)

// TestBadInput runs testdata/badinput: what a user sees when something is
// wrong with a secret, a location, a name or another pcctl. Its scripts have
// ready-made clusters, which open in no time, and these commands:
//
//	cluster LOC...          makes the locations those of one cluster
//	foreign LOC...          makes them those of another one
//	random FILE SIZE        makes a file of random bytes
//	longname VAR N          sets a variable to a name of N characters
//	pick VAR LOC KIND N     sets a variable to the path, below the location, of
//	                        its Nth largest blob of a kind
//	flip FILE OFFSET        alters a byte
//	cut FILE SIZE           makes a file shorter or longer
//	swap FILE FILE          exchanges two files
//	refused STATUS PATTERN COMMAND...
//	                        runs pcctl, which must end with the status and one
//	                        line on standard error that matches
//	snapshot LOC...         remembers what the locations hold
//	untouched LOC...        compares with that
//	notemp LOC...           fails if there are temporary files
//	readonly LOC            makes a location read-only, on condition [readonly]
//	small DIR SIZE          mounts a small disk, on condition [mount]
func TestBadInput(t *testing.T) {
	first, second := keystest.First(t), keystest.Second(t)
	canMount, canProtect := mountable(t), mountable(t) || runtime.GOOS != "windows" && os.Geteuid() != 0
	p := params(t, filepath.Join("testdata", "badinput"))
	setup := p.Setup
	p.Setup = func(env *testscript.Env) error {
		if err := setup(env); err != nil {
			return err
		}
		env.Setenv("POWERCLOUD_PASSPHRASE", first.Passphrase)
		return nil
	}
	p.Condition = func(name string) (bool, error) {
		switch name {
		case "mount":
			return canMount, nil
		case "readonly":
			return canProtect, nil
		}
		return false, nil
	}
	commands := map[string]func(ts *testscript.TestScript, args []string){
		"cluster":   func(ts *testscript.TestScript, args []string) { found(ts, first.Header, args) },
		"foreign":   func(ts *testscript.TestScript, args []string) { found(ts, second.Header, args) },
		"random":    random,
		"longname":  longName,
		"pick":      pick,
		"flip":      flip,
		"cut":       cut,
		"swap":      swap,
		"refused":   refused,
		"snapshot":  snapshot,
		"untouched": untouched,
		"notemp":    noTemporaries,
		"readonly":  readOnly,
		"small":     smallDisk,
	}
	for name, run := range commands {
		p.Cmds[name] = func(ts *testscript.TestScript, negated bool, args []string) {
			if negated || len(args) == 0 {
				ts.Fatalf("%s has arguments and isn't negated", name)
			}
			run(ts, args)
		}
	}
	testscript.Run(t, p)
}

// mountable tells whether this process may mount.
func mountable(t *testing.T) bool {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return false
	}
	dir := t.TempDir()
	if exec.Command("mount", "-t", "tmpfs", "tmpfs", dir).Run() != nil {
		return false
	}
	return exec.Command("umount", dir).Run() == nil
}

func found(ts *testscript.TestScript, header []byte, locations []string) {
	for _, l := range locations {
		ts.Check(os.MkdirAll(ts.MkAbs(l), 0o700))
		ts.Check(os.WriteFile(filepath.Join(ts.MkAbs(l), "header"), header, 0o600))
	}
}

func number(ts *testscript.TestScript, text string) int {
	n, err := strconv.Atoi(text)
	ts.Check(err)
	return n
}

func random(ts *testscript.TestScript, args []string) {
	content := make([]byte, number(ts, args[1]))
	_, err := rand.Read(content)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), content, 0o600))
}

func longName(ts *testscript.TestScript, args []string) {
	ts.Setenv(args[0], strings.Repeat("n", number(ts, args[1])))
}

func pick(ts *testscript.TestScript, args []string) {
	type file struct {
		path string
		size int64
	}
	var blobs []file
	location := ts.MkAbs(args[1])
	ts.Check(filepath.WalkDir(filepath.Join(location, args[2]), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		path, err = filepath.Rel(location, path)
		blobs = append(blobs, file{path, info.Size()})
		return err
	}))
	slices.SortStableFunc(blobs, func(a, b file) int { return int(b.size - a.size) })
	n := number(ts, args[3])
	if n < 1 || n > len(blobs) {
		ts.Fatalf("%s has %d blobs of kind %s", args[1], len(blobs), args[2])
	}
	ts.Setenv(args[0], filepath.ToSlash(blobs[n-1].path))
}

func flip(ts *testscript.TestScript, args []string) {
	path := ts.MkAbs(args[0])
	content, err := os.ReadFile(path)
	ts.Check(err)
	content[number(ts, args[1])] ^= 1
	ts.Check(os.WriteFile(path, content, 0o600))
}

func cut(ts *testscript.TestScript, args []string) {
	ts.Check(os.Truncate(ts.MkAbs(args[0]), int64(number(ts, args[1]))))
}

func swap(ts *testscript.TestScript, args []string) {
	a, b := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	ts.Check(os.Rename(a, a+".swap"))
	ts.Check(os.Rename(b, a))
	ts.Check(os.Rename(a+".swap", b))
}

func refused(ts *testscript.TestScript, args []string) {
	exits(ts, false, append([]string{args[0], "pcctl"}, args[2:]...))
	checkOneLine(ts.Fatalf, args[1], ts.ReadFile("stderr"))
}

// checkOneLine compares what a failed command printed on standard error.
func checkOneLine(fail func(format string, args ...any), pattern, stderr string) {
	line, end := strings.CutSuffix(stderr, "\n")
	if !end || strings.Contains(line, "\n") || !strings.HasPrefix(line, "pcctl: ") {
		fail("not one line of an error:\n%s", stderr)
	}
	if !regexp.MustCompile(pattern).MatchString(line) {
		fail("the error doesn't match %s:\n%s", pattern, stderr)
	}
}

func snapshot(ts *testscript.TestScript, locations []string) {
	for _, l := range locations {
		ts.Setenv("SNAPSHOT_"+filepath.Base(l), hashTree(ts, l))
	}
}

func untouched(ts *testscript.TestScript, locations []string) {
	for _, l := range locations {
		if ts.Getenv("SNAPSHOT_"+filepath.Base(l)) != hashTree(ts, l) {
			ts.Fatalf("%s was changed", l)
		}
	}
}

// hashTree returns a hash of the names and contents of the files below a
// location.
func hashTree(ts *testscript.TestScript, location string) string {
	hash := sha256.New()
	ts.Check(filepath.WalkDir(ts.MkAbs(location), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		hash.Write([]byte(path + "\x00"))
		hash.Write(content)
		return err
	}))
	return hex.EncodeToString(hash.Sum(nil))
}

func noTemporaries(ts *testscript.TestScript, locations []string) {
	for _, l := range locations {
		left, err := filepath.Glob(filepath.Join(ts.MkAbs(l), "tmp", "*"))
		ts.Check(err)
		if len(left) > 0 {
			ts.Fatalf("temporary files are left: %s", left)
		}
	}
}

func readOnly(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	if os.Geteuid() == 0 {
		ts.Check(ts.Exec("mount", "--bind", dir, dir))
		ts.Defer(func() { _ = exec.Command("umount", dir).Run() })
		ts.Check(ts.Exec("mount", "-o", "remount,bind,ro", dir))
		return
	}
	var dirs []string
	ts.Check(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	}))
	for _, d := range dirs {
		ts.Check(os.Chmod(d, 0o500))
	}
	ts.Defer(func() {
		for _, d := range dirs {
			_ = os.Chmod(d, 0o700)
		}
	})
}

func smallDisk(ts *testscript.TestScript, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(ts.Exec("mount", "-t", "tmpfs", "-o", "size="+args[1], "tmpfs", dir))
	ts.Defer(func() { _ = exec.Command("umount", dir).Run() })
}

// session is a cluster in one location and pcctl's environment for it.
type session struct {
	t          *testing.T
	dir        string
	passphrase string
}

func newSession(t *testing.T) session {
	first := keystest.First(t)
	s := session{t: t, dir: t.TempDir(), passphrase: first.Passphrase}
	if err := os.Mkdir(s.path("home"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("home/header"), first.Header, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s session) path(name string) string { return filepath.Join(s.dir, filepath.FromSlash(name)) }

// run runs pcctl in this process.
func (s session) run(stdout io.Writer, args ...string) (status int, stderr string) {
	var errors bytes.Buffer
	status = pcctl.Run(context.Background(), pcctl.Env{
		Args:   append([]string{"pcctl", "--repo", s.path("home")}, args...),
		Stdout: stdout, Stderr: &errors,
		Getenv: func(name string) string {
			if name == "POWERCLOUD_PASSPHRASE" {
				return s.passphrase
			}
			return ""
		},
	})
	return status, errors.String()
}

func (s session) mustRun(args ...string) {
	s.t.Helper()
	if status, stderr := s.run(io.Discard, args...); status != 0 {
		s.t.Fatalf("pcctl %q: %s", args, stderr)
	}
}

// randomFile makes a file of n chunks, all different.
func (s session) randomFile(name string, chunks int) string {
	s.t.Helper()
	content := make([]byte, chunks<<22)
	_, err := rand.Read(content)
	if err == nil {
		err = os.WriteFile(s.path(name), content, 0o600)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return s.path(name)
}

// TestNULInAName uses the only way there is for such a name: no system passes
// it to a program.
func TestNULInAName(t *testing.T) {
	s := newSession(t)
	file := s.randomFile("file", 0)
	status, stderr := s.run(io.Discard, "put", "a\x00b", file)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	checkOneLine(t.Fatalf, `^pcctl: the object's name "a\\x00b" has control characters$`, stderr)
	if _, stderr = s.run(io.Discard, "get", "a\x00b"); !strings.Contains(stderr, "no such object") {
		t.Errorf("get: %s", stderr)
	}
}

// TestRemovedWhileRead removes an object and has its chunks collected after a
// reader got the first bytes of it.
func TestRemovedWhileRead(t *testing.T) {
	s := newSession(t)
	// More than is read ahead.
	s.mustRun("put", "n", s.randomFile("file", 16+4*runtime.NumCPU()))
	reader, writer := io.Pipe()
	type result struct {
		status int
		stderr string
	}
	done := make(chan result, 1)
	go func() {
		status, stderr := s.run(writer, "get", "n")
		writer.Close()
		done <- result{status, stderr}
	}()
	if _, err := io.ReadFull(reader, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	s.mustRun("rm", "n")
	s.mustRun("gc", "--grace", "0s")
	s.mustRun("gc", "--grace", "0s")
	if _, err := io.Copy(io.Discard, reader); err != nil {
		t.Fatal(err)
	}
	got := <-done
	if got.status != 1 {
		t.Errorf("status %d", got.status)
	}
	checkOneLine(t.Fatalf, `^pcctl: n: the object changed while it was being read; try again$`, got.stderr)
}

// TestInterrupted presses Ctrl-C while put waits for the rest of its input.
func TestInterrupted(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no named pipes in directories, and no signal to send")
	}
	s := newSession(t)
	pipe := s.path("pipe")
	if err := exec.Command("mkfifo", pipe).Run(); err != nil {
		t.Skipf("no named pipe: %v", err)
	}
	var stderr bytes.Buffer
	put := exec.Command("pcctl", "--repo", s.path("home"), "put", "n", pipe)
	put.Env = append(os.Environ(), "POWERCLOUD_PASSPHRASE="+s.passphrase)
	put.Stderr = &stderr
	if err := put.Start(); err != nil {
		t.Fatal(err)
	}
	// Opening waits until pcctl has opened the other end.
	input, err := os.OpenFile(pipe, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	if _, err := input.Write(make([]byte, 9<<20)); err != nil {
		t.Fatal(err)
	}
	if err := put.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = put.Wait()
	if status := put.ProcessState.ExitCode(); status != 1 {
		t.Errorf("status %d", status)
	}
	checkOneLine(t.Fatalf, `^pcctl: interrupted$`, stderr.String())
	if left, _ := filepath.Glob(s.path("home/tmp/*")); len(left) > 0 {
		t.Errorf("temporary files are left: %s", left)
	}
	s.mustRun("check")
	if _, stderr := s.run(io.Discard, "get", "n"); !strings.Contains(stderr, "no such object") {
		t.Errorf("get: %s", stderr)
	}
}
