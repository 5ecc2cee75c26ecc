//go:build linux && (amd64 || arm64)

package identity

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/tests/crash/powercut"
	"powercloud.unidatum.com/tests/crash/ptrace"
)

// TestMain is also the programs that are cut short: argument 0 says which.
func TestMain(m *testing.M) {
	ptrace.Launcher()
	var err error
	switch os.Args[0] {
	case "install":
		err = installFrom(os.Args[1], os.Args[2])
	case "membership", "certificate":
		err = replaceBy(os.Args[0], os.Args[1], os.Args[2])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// installFrom installs in a folder the identity that is in another.
func installFrom(folder, source string) error {
	from, err := Load(source)
	if err != nil {
		return err
	}
	i, _ := from.Current()
	_, err = Install(folder, i)
	return err
}

// replaceBy replaces something in a folder by that of the identity in another.
func replaceBy(what, folder, source string) error {
	from, err := Load(source)
	if err != nil {
		return err
	}
	kept, err := Load(folder)
	if err != nil {
		return err
	}
	i, _ := from.Current()
	if what == "membership" {
		_, err = kept.ReplaceMembership(i.Membership.Signed())
	} else {
		_, err = kept.ReplaceCertificate(i.Certificate, i.Self.Issued)
	}
	return err
}

// scenario is a program that is cut short, from the folders before and after.
type scenario struct {
	program string
	// before is the identity that there is before, nil for none; after is the one
	// afterwards, and source the folder from which the program has it.
	before, after *Identity
	source        string
}

func scenarios(t *testing.T) []scenario {
	t.Helper()
	ca := first(t)
	p := parts(t, ca)
	old := build(t, p)
	p.Membership = members(t, ca, 9, "home-9", p.Key.ID())
	listed := build(t, p)
	p = parts(t, ca)
	p.Certificate = certificate(t, ca, p.Key, issued().Add(time.Hour)).Raw
	renewed := build(t, p)
	list := []scenario{
		{"install", nil, old, scratch(t)}, {"membership", old, listed, scratch(t)}, {"certificate", old, renewed, scratch(t)},
	}
	for _, s := range list {
		install(t, s.source, s.after)
	}
	return list
}

// scratch makes an empty directory, in memory if there is a place for it: how fast a
// disk syncs is of no interest here.
func scratch(t *testing.T) string {
	t.Helper()
	directory, err := os.MkdirTemp("/dev/shm", "powercloud-identity-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(directory); err != nil {
			t.Error(err)
		}
	})
	return directory
}

// folder returns a state folder as it is before.
func (s scenario) folder(t *testing.T) string {
	t.Helper()
	folder := scratch(t)
	if s.before != nil {
		install(t, folder, s.before)
	}
	return folder
}

// run runs the program over a folder.
func (s scenario) run(t *testing.T, folder string, enter func(ptrace.Call) bool, exit func(ptrace.Call, int64, error)) ptrace.Result {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	inside := func(c ptrace.Call) bool { return c.Path == folder || strings.HasPrefix(c.Path, folder+"/") }
	result, err := ptrace.Run(self, ptrace.Options{
		Args: []string{s.program, folder, s.source}, Env: os.Environ(), Timeout: 5 * time.Minute,
		Enter: func(c ptrace.Call) bool { return inside(c) && enter(c) },
		Exit: func(c ptrace.Call, value int64, err error) {
			if inside(c) {
				exit(c, value, err)
			}
		},
	})
	if err != nil || !result.Killed && result.ExitCode != 0 {
		t.Fatalf("%v, %s", err, result.Stderr)
	}
	return result
}

// verify tells what is wrong with what is left in a folder, and reports whether that
// is what is there afterwards. It lets the node go on from there.
func (s scenario) verify(t *testing.T, folder string) (after bool, err error) {
	t.Helper()
	kept, err := Load(folder)
	switch {
	case errors.Is(err, ErrNone) && s.before == nil:
		// A new attempt isn't disturbed by what is left.
		if _, err := Install(folder, s.after); err != nil {
			return false, err
		}
		if kept, err = Load(folder); err != nil {
			return false, err
		}
	case err != nil:
		return false, err
	default:
		i, _ := kept.Current()
		after = same(t, i, s.after)
		if !after && (s.before == nil || !same(t, i, s.before)) {
			return false, errors.New("there is something else")
		}
		if _, err := kept.ReplaceMembership(s.after.Membership.Signed()); err != nil {
			return false, err
		}
		if _, err := kept.ReplaceCertificate(s.after.Certificate, s.after.Self.Issued); err != nil {
			return false, err
		}
	}
	if i, _ := kept.Current(); !same(t, i, s.after) || !same(t, load(t, folder), s.after) {
		return false, errors.New("it isn't what it should be in the end")
	}
	for _, path := range []string{folder, kept.directory} {
		entries, err := os.ReadDir(path)
		if err != nil {
			return false, err
		}
		for _, entry := range entries {
			if name := entry.Name(); name == pendingName || strings.HasSuffix(name, ".tmp") {
				return false, fmt.Errorf("%s is left", name)
			}
		}
	}
	return after, nil
}

// TestKilledAtEveryCall kills each program at every call that changes the folder.
func TestKilledAtEveryCall(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.program, func(t *testing.T) {
			t.Parallel()
			afters, n := 0, 1
			for ; ; n++ {
				folder, count, last := s.folder(t), 0, ""
				result := s.run(t, folder, func(c ptrace.Call) bool {
					count, last = count+1, c.String()
					return count == n
				}, func(ptrace.Call, int64, error) {})
				after, err := s.verify(t, folder)
				if err != nil {
					t.Errorf("killed at call %d, %s: %v", n, last, err)
				}
				if !result.Killed {
					if !after {
						t.Error("it has ended, and nothing has changed")
					}
					break
				}
				if after {
					afters++
				}
			}
			// After the rename only the folder is synced.
			if n < 5 || afters != 1 {
				t.Errorf("of %d calls, %d were after the change", n, afters)
			}
			t.Logf("%d calls", n-1)
		})
	}
}

// TestPowerCutAtEveryCall cuts the power at every call, and leaves of what wasn't
// synced everything, nothing, and the names in one directory.
func TestPowerCutAtEveryCall(t *testing.T) {
	for _, s := range scenarios(t) {
		t.Run(s.program, func(t *testing.T) {
			t.Parallel()
			folder := s.folder(t)
			journal, err := powercut.New(folder)
			if err != nil {
				t.Fatal(err)
			}
			seen := map[any]bool{}
			cut := func(call string, ended bool) {
				for _, keep := range []func(string) bool{
					func(string) bool { return true },
					func(string) bool { return false },
					func(directory string) bool { return directory == "" },
					func(directory string) bool { return directory != "" },
				} {
					state := journal.Cut(keep)
					if sum := state.Sum(); seen[sum] {
						continue
					} else if !ended {
						seen[sum] = true
					}
					left := filepath.Join(scratch(t), "left")
					if err := state.Write(left); err != nil {
						t.Fatal(err)
					}
					if after, err := s.verify(t, left); err != nil || ended && !after {
						t.Errorf("cut at %s: %v, changed: %v, of %v", call, err, after, state)
					}
				}
			}
			s.run(t, folder, func(c ptrace.Call) bool {
				journal.Enter(c)
				cut(c.String(), false)
				return false
			}, journal.Exit)
			if states := len(seen); states < 4 {
				t.Errorf("only %d states were seen", states)
			} else {
				t.Logf("%d states", states)
			}
			clear(seen)
			cut("the end", true)
			for _, problem := range append(journal.Problems(), journal.Pending()...) {
				t.Error(problem)
			}
		})
	}
}
