//go:build linux && (amd64 || arm64)

package ptrace_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/crash/ptrace"
)

// TestMain is also the program that the tests trace: argument 0 says which.
func TestMain(m *testing.M) {
	ptrace.Launcher()
	switch os.Args[0] {
	case "replace":
		exit(replace(os.Args[1]))
	case "threads":
		exit(threads(os.Args[1], 16, 20))
	case "hang":
		exit(hang())
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	fmt.Println("done")
	os.Exit(0)
}

// replace writes a file anew, the way that survives a power cut.
func replace(dir string) error {
	temp := filepath.Join(dir, "temp")
	f, err := os.Create(temp)
	if err != nil {
		return err
	}
	_, err = f.WriteString("new")
	if err = errors.Join(err, f.Sync(), f.Close(), os.Rename(temp, filepath.Join(dir, "file"))); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return err
	}
	os.Remove(filepath.Join(dir, "absent"))
	return nil
}

func threads(dir string, n, files int) error {
	var group sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		group.Go(func() {
			for j := range files {
				path := filepath.Join(dir, fmt.Sprintf("%d-%d", i, j))
				errs[i] = errors.Join(errs[i], os.WriteFile(path, []byte("x"), 0o600))
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// hang waits for what never comes.
func hang() error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = r.Read(make([]byte, 1))
	return err
}

// run traces one of the programs above over a directory.
func run(t *testing.T, name, dir string, opts ptrace.Options) ptrace.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	opts.Args = []string{name, dir}
	result, err := ptrace.Run(self, opts)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func within(dir string, c ptrace.Call) bool { return strings.HasPrefix(c.Path, dir) }

func TestRunSeesEveryChange(t *testing.T) {
	dir := t.TempDir()
	var entered, left []string
	result := run(t, "replace", dir, ptrace.Options{
		Enter: func(c ptrace.Call) bool {
			if within(dir, c) {
				entered = append(entered, strings.ReplaceAll(c.String(), dir, "DIR"))
			}
			return false
		},
		Exit: func(c ptrace.Call, result int64, err error) {
			if within(dir, c) {
				left = append(left, fmt.Sprint(c.Op, " ", err))
			}
		},
	})
	if result.ExitCode != 0 || string(result.Stdout) != "done\n" || len(result.Stderr) != 0 {
		t.Fatalf("got %+v", result)
	}
	rename := "renameat DIR/temp -> DIR/file"
	wantEntered := []string{"openat DIR/temp", "write DIR/temp", "fsync DIR/temp", rename, "fsync DIR",
		"unlinkat DIR/absent", "unlinkat DIR/absent"}
	for i, call := range entered {
		// Go uses the oldest of the system calls that an architecture has.
		entered[i] = strings.NewReplacer("renameat2 ", "renameat ", "rename ", "renameat ").Replace(call)
	}
	if !slices.Equal(entered, wantEntered) {
		t.Errorf("calls made:\n%q\nwant\n%q", entered, wantEntered)
	}
	wantLeft := []string{
		fmt.Sprint(ptrace.OpOpen, " <nil>"), fmt.Sprint(ptrace.OpWrite, " <nil>"), fmt.Sprint(ptrace.OpSync, " <nil>"),
		fmt.Sprint(ptrace.OpRename, " <nil>"), fmt.Sprint(ptrace.OpSync, " <nil>"),
		fmt.Sprint(ptrace.OpUnlink, " ", syscall.ENOENT), fmt.Sprint(ptrace.OpRmdir, " ", syscall.ENOENT),
	}
	if !slices.Equal(left, wantLeft) {
		t.Errorf("results:\n%q\nwant\n%q", left, wantLeft)
	}
}

func TestKilledCallIsNotMade(t *testing.T) {
	// What the directory holds when the program is killed at each of its calls.
	states := []string{"file=old", "file=old temp=", "file=old temp=new", "file=old temp=new", "file=new", "file=new"}
	for n, want := range states {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		calls := 0
		result := run(t, "replace", dir, ptrace.Options{Enter: func(c ptrace.Call) bool {
			if !within(dir, c) {
				return false
			}
			calls++
			return calls == n+1
		}})
		if !result.Killed || result.ExitCode != -1 {
			t.Errorf("at call %d: %+v, want a killed program", n, result)
		}
		if got := contents(t, dir); got != want {
			t.Errorf("killed at call %d, the directory holds %s, want %s", n, got, want)
		}
	}
}

func contents(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		list = append(list, d.Name()+"="+string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(list, " ")
}

func TestThreadsAreFollowed(t *testing.T) {
	dir := t.TempDir()
	opens, writes := 0, 0
	result := run(t, "threads", dir, ptrace.Options{
		Exit: func(c ptrace.Call, result int64, err error) {
			switch {
			case !within(dir, c) || err != nil:
			case c.Op == ptrace.OpOpen && c.Create:
				opens++
			case c.Op == ptrace.OpWrite && result == 1:
				writes++
			}
		},
	})
	if result.ExitCode != 0 || opens != 320 || writes != 320 {
		t.Errorf("exit status %d, %d opens and %d writes, want 0, 320 and 320\n%s", result.ExitCode, opens, writes, result.Stderr)
	}
}

func TestRunReportsFailure(t *testing.T) {
	if result := run(t, "replace", filepath.Join(t.TempDir(), "absent"), ptrace.Options{}); result.ExitCode != 3 {
		t.Errorf("got %+v, want exit status 3", result)
	}
	if _, err := ptrace.Run("/nonexistent/program", ptrace.Options{Args: []string{"x"}}); err == nil {
		t.Error("running a program that does not exist succeeded")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ptrace.Run(self, ptrace.Options{Args: []string{"hang"}, Timeout: 200 * time.Millisecond}); err == nil {
		t.Error("a program that hangs was waited for")
	}
}
