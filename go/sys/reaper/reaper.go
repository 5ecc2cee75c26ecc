// Package reaper starts a program's children and does all of its waiting. It is
// for PID 1, which gets every orphan of the machine as a child.
//
// # Why not os/exec
//
// PID 1 must wait for children that it doesn't know, with wait4(-1) or the like.
// os/exec waits for the children it started by itself. Whichever call comes
// first takes the status: os/exec then fails with ECHILD, and a process number
// that it still means to signal may already be somebody else's.
//
// # How the race is avoided
//
// One goroutine does all waiting, and one lock orders it with starting and
// signalling:
//
//   - The goroutine looks for a child that ended with WNOWAIT, which leaves it a
//     zombie. Only then it takes the lock, reaps that child, and hands its status
//     to whoever started it, if anybody did.
//   - Start holds the lock from before the fork until the child is in the table.
//     A child that ends at once stays a zombie until then: its status can't be
//     lost. The same holds for a child that can't execute its program, for which
//     syscall.ForkExec itself waits.
//   - Signal holds the lock and looks into the table. What is in there hasn't
//     been reaped, so its number can't belong to another process.
//
// Nothing else in the process may wait for children, or use os/exec,
// os.StartProcess or os.Process. SIGCHLD tells when to look; signals merge, so
// each one means "at least one child ended", and the goroutine looks until there
// is none left.
package reaper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Reaper starts and waits for children. Create one with New; Run must run
// exactly once.
type Reaper struct {
	mu       sync.Mutex
	children map[int]*Child

	// orphan is told of each child that ended and wasn't started here.
	orphan func(pid int, status syscall.WaitStatus)
}

// Child is a process that was started by Start.
type Child struct {
	// PID is its number. Use Reaper.Signal to signal it.
	PID    int
	done   chan struct{}
	status syscall.WaitStatus
}

// Done is closed when the child has ended and Status is known.
func (c *Child) Done() <-chan struct{} { return c.done }

// Status returns how the child ended. It waits until it has.
func (c *Child) Status() syscall.WaitStatus {
	<-c.done
	return c.status
}

// ErrEnded is returned by Signal for a child that has been reaped.
var ErrEnded = errors.New("the process has ended")

// New returns a Reaper. The function, if any, is called for every orphan that
// was reaped, by the goroutine that reaps: it must not wait for anything.
func New(orphan func(pid int, status syscall.WaitStatus)) *Reaper {
	return &Reaper{children: map[int]*Child{}, orphan: orphan}
}

// Run reaps until ctx is done.
func (r *Reaper) Run(ctx context.Context) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, unix.SIGCHLD)
	defer signal.Stop(ended)
	// What ended before the signal was asked for sends none.
	for {
		if err := r.reapAll(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
		}
	}
}

// reapAll reaps every child that has ended.
func (r *Reaper) reapAll() error {
	for {
		pid, err := peek()
		if err != nil || pid == 0 {
			return err
		}
		if err := r.reap(pid); err != nil {
			return err
		}
	}
}

// peek returns a child that has ended, and leaves it a zombie; 0 when there is
// none.
func peek() (int, error) {
	var info childInfo
	for {
		err := info.waitid(unix.WEXITED | unix.WNOHANG | unix.WNOWAIT)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return 0, nil
		case err != nil:
			return 0, fmt.Errorf("look for a child that ended: %w", err)
		}
		return info.pid(), nil
	}
}

// reap takes the status of a child that has ended.
func (r *Reaper) reap(pid int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.ECHILD) {
			// syscall.ForkExec took it: its program couldn't be executed.
			return nil
		}
		if err != nil {
			return fmt.Errorf("reap process %d: %w", pid, err)
		}
		break
	}
	child, ours := r.children[pid]
	delete(r.children, pid)
	switch {
	case ours:
		child.status = status
		close(child.done)
	case r.orphan != nil:
		r.orphan(pid, status)
	}
	return nil
}

// Start starts a program, as syscall.ForkExec does. Descriptors that the child
// must not have are marked close-on-exec.
func (r *Reaper) Start(path string, arguments []string, attributes *syscall.ProcAttr) (*Child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, arguments, attributes)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	child := &Child{PID: pid, done: make(chan struct{})}
	r.children[pid] = child
	return child, nil
}

// Signal sends a signal to a child that was started here. It returns ErrEnded
// when the child has been reaped.
func (r *Reaper) Signal(child *Child, s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[child.PID] != child {
		return ErrEnded
	}
	if err := syscall.Kill(child.PID, s); err != nil {
		return fmt.Errorf("send %v to process %d: %w", s, child.PID, err)
	}
	return nil
}

// Describe says in words how a process ended.
func Describe(status syscall.WaitStatus) string {
	switch {
	case status.Signaled() && status.CoreDump():
		return fmt.Sprintf("was killed by signal %d (%v) and dumped core", status.Signal(), status.Signal())
	case status.Signaled():
		return fmt.Sprintf("was killed by signal %d (%v)", status.Signal(), status.Signal())
	case status.Exited():
		return fmt.Sprintf("exited with status %d", status.ExitStatus())
	}
	return fmt.Sprintf("ended with wait status %#x", uint32(status))
}
