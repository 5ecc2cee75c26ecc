//go:build linux && (amd64 || arm64)

package powercut_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/tests/crash/powercut"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

// program makes calls and tells the journal, as a traced program would.
type program struct {
	t   *testing.T
	dir string
	j   *powercut.Journal
}

func start(t *testing.T) *program {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	j, err := powercut.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return &program{t, dir, j}
}

func (p *program) call(c ptrace.Call, do func() error) {
	p.t.Helper()
	c.PID = os.Getpid()
	c.Path = filepath.Join(p.dir, c.Path)
	if c.NewPath != "" {
		c.NewPath = filepath.Join(p.dir, c.NewPath)
	}
	p.j.Enter(c)
	if err := do(); err != nil {
		p.t.Fatal(err)
	}
	p.j.Exit(c, 0, nil)
}

func (p *program) path(name string) string { return filepath.Join(p.dir, name) }

func (p *program) write(name, content string, sync bool) {
	p.t.Helper()
	var f *os.File
	p.call(ptrace.Call{Op: ptrace.OpOpen, Path: name, Create: true}, func() (err error) {
		f, err = os.Create(p.path(name))
		return err
	})
	p.call(ptrace.Call{Op: ptrace.OpWrite, Path: name}, func() error {
		_, err := f.WriteString(content)
		return err
	})
	if sync {
		p.call(ptrace.Call{Op: ptrace.OpSync, Path: name, FD: int(f.Fd())}, f.Sync)
	}
	f.Close()
}

func (p *program) rename(from, to string) {
	p.t.Helper()
	p.call(ptrace.Call{Op: ptrace.OpRename, Path: from, NewPath: to}, func() error {
		return os.Rename(p.path(from), p.path(to))
	})
}

func (p *program) mkdir(name string) {
	p.t.Helper()
	p.call(ptrace.Call{Op: ptrace.OpMkdir, Path: name}, func() error { return os.Mkdir(p.path(name), 0o700) })
}

func (p *program) syncDir(name string) {
	p.t.Helper()
	p.call(ptrace.Call{Op: ptrace.OpSync, Path: name}, func() error { return nil })
}

// expect compares what a power cut would leave, without and with the names
// that were not synced.
func (p *program) expect(lost, kept string) {
	p.t.Helper()
	for keep, want := range map[bool]string{false: lost, true: kept} {
		state := p.j.Cut(func(string) bool { return keep })
		var list []string
		for _, path := range slices.Sorted(maps.Keys(state)) {
			list = append(list, path+"="+string(state[path]))
		}
		if got := strings.Join(list, " "); got != want {
			p.t.Errorf("after a power cut that keeps names (%v): %s, want %s", keep, got, want)
		}
	}
}

func TestReplaceAFile(t *testing.T) {
	p := start(t)
	p.expect("file=old", "file=old")
	p.write("temp", "new", true)
	p.expect("file=old", "file=old temp=new")
	p.rename("temp", "file")
	p.expect("file=old", "file=new")
	if pending := p.j.Pending(); !slices.Contains(pending, p.path("file")) {
		t.Errorf("pending names %q lack the renamed file", pending)
	}
	p.syncDir(".")
	p.expect("file=new", "file=new")
	if len(p.j.Pending()) != 0 || len(p.j.Problems()) != 0 {
		t.Errorf("pending %q, problems %q, want none", p.j.Pending(), p.j.Problems())
	}
}

func TestUnsyncedContentIsLost(t *testing.T) {
	p := start(t)
	p.write("temp", "new", false)
	p.rename("temp", "file")
	p.syncDir(".")
	p.expect("file=", "file=")
	if problems := p.j.Problems(); len(problems) != 1 || !strings.Contains(problems[0], "before temp was synced") {
		t.Errorf("problems %q, want the unsynced rename", problems)
	}
}

func TestUnsyncedDirectoryIsLost(t *testing.T) {
	p := start(t)
	p.mkdir("a")
	p.write("a/file", "x", true)
	p.syncDir("a")
	p.expect("file=old", "a/= a/file=x file=old")
	p.syncDir(".")
	p.call(ptrace.Call{Op: ptrace.OpUnlink, Path: "file"}, func() error { return os.Remove(p.path("file")) })
	p.expect("a/= a/file=x file=old", "a/= a/file=x")
}

// A sync covers what was there when it began.
func TestLateChangesAreNotCovered(t *testing.T) {
	p := start(t)
	first := ptrace.Call{Op: ptrace.OpSync, PID: 1, Path: p.dir}
	second := ptrace.Call{Op: ptrace.OpSync, PID: 2, Path: p.dir}
	p.mkdir("a")
	p.j.Enter(first)
	p.j.Enter(second)
	p.mkdir("b")
	p.j.Exit(first, 0, nil)
	p.j.Exit(second, 0, nil)
	p.expect("a/= file=old", "a/= b/= file=old")
}

func TestStateIsWritten(t *testing.T) {
	p := start(t)
	p.mkdir("a")
	p.write("a/file", "x", true)
	state := p.j.Cut(func(string) bool { return true })
	if state.Sum() == p.j.Cut(func(string) bool { return false }).Sum() {
		t.Error("different states have the same sum")
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if err := state.Write(dir); err != nil {
		t.Fatal(err)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "a/file")); err != nil || string(data) != "x" {
		t.Errorf("read %q, %v", data, err)
	}
}
