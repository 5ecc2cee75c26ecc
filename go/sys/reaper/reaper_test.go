package reaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// role tells the test's own program, started as a child, what to do.
const role = "REAPER_TEST_ROLE"

func TestMain(m *testing.M) {
	switch value := os.Getenv(role); value {
	case "":
		os.Exit(m.Run())
	case "orphans":
		os.Exit(leaveOrphans())
	case "wait":
		// Until the parent closes the pipe or sends a signal.
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	default:
		status, _ := strconv.Atoi(value)
		os.Exit(status)
	}
}

// leaveOrphans starts children and doesn't wait for them.
func leaveOrphans() int {
	for i := range 5 {
		attributes := &syscall.ProcAttr{Env: []string{fmt.Sprintf("%s=%d", role, i)}}
		if _, err := syscall.ForkExec("/proc/self/exe", []string{"orphan"}, attributes); err != nil {
			return 100
		}
	}
	return 42
}

// start runs a Reaper for the test's time. The kernel gives orphans to this
// process as it does to PID 1.
func start(t *testing.T, orphan func(int, syscall.WaitStatus)) *Reaper {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	r := New(orphan)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return r
}

func child(t *testing.T, r *Reaper, role string, files ...uintptr) *Child {
	t.Helper()
	c, err := r.Start("/proc/self/exe", []string{"child"}, &syscall.ProcAttr{Env: []string{"REAPER_TEST_ROLE=" + role}, Files: files})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestManyAtOnce starts children that end at once, children that leave orphans,
// and programs that don't exist, all at the same time: every status must arrive
// where it belongs, and every orphan must be reaped.
func TestManyAtOnce(t *testing.T) {
	const starters, rounds = 8, 25
	var orphans atomic.Int64
	all := make(chan struct{})
	r := start(t, func(int, syscall.WaitStatus) {
		if orphans.Add(1) == starters*rounds*5 {
			close(all)
		}
	})
	var starting sync.WaitGroup
	for starter := range starters {
		starting.Go(func() {
			for round := range rounds {
				want := (starter*rounds + round) % 100
				quick := child(t, r, strconv.Itoa(want))
				parent := child(t, r, "orphans")
				if _, err := r.Start("/does/not/exist", nil, &syscall.ProcAttr{}); !errors.Is(err, unix.ENOENT) {
					t.Errorf("a program that doesn't exist: %v", err)
				}
				if s := quick.Status(); !s.Exited() || s.ExitStatus() != want {
					t.Errorf("a child %s instead of exiting with %d", Describe(s), want)
				}
				if s := parent.Status(); s.ExitStatus() != 42 {
					t.Errorf("a child with orphans %s", Describe(s))
				}
				if err := r.Signal(quick, unix.SIGKILL); !errors.Is(err, ErrEnded) {
					t.Errorf("a reaped child was signalled: %v", err)
				}
			}
		})
	}
	starting.Wait()
	select {
	case <-all:
	case <-time.After(time.Minute):
		t.Fatalf("only %d orphans of %d were reaped", orphans.Load(), starters*rounds*5)
	}
	if pid, err := peek(); pid != 0 || err != nil {
		t.Errorf("process %d wasn't reaped (%v)", pid, err)
	}
	if len(r.children) != 0 {
		t.Errorf("the table still holds %d children", len(r.children))
	}
}

func TestSignal(t *testing.T) {
	r := start(t, nil)
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close(); _ = out.Close() }()
	c := child(t, r, "wait", in.Fd())
	if err := r.Signal(c, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if got, want := Describe(c.Status()), "was killed by signal 9 (killed)"; got != want {
		t.Errorf("it %s, want %s", got, want)
	}
}

func TestChildrenThatEndedBeforeRun(t *testing.T) {
	// Started and ended before anybody listens for SIGCHLD.
	r := New(nil)
	c := child(t, r, "7")
	var info childInfo
	if err := info.waitid(unix.WEXITED | unix.WNOWAIT); err != nil {
		t.Fatal(err)
	}
	if info.pid() != c.PID {
		t.Fatalf("process %d ended instead of %d", info.pid(), c.PID)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() { _ = r.Run(ctx) }()
	if s := c.Status(); s.ExitStatus() != 7 {
		t.Errorf("it %s", Describe(s))
	}
}
