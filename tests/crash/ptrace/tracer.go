//go:build linux && (amd64 || arm64)

package ptrace

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// thread is what is known of a traced thread.
type thread struct {
	call *Call // the call it is making, between its entry and its exit
}

type tracer struct {
	pid      int
	opts     Options
	rules    map[int]rule
	threads  map[int]*thread
	execed   bool // the launcher has become the program
	killed   bool
	timedOut atomic.Bool
	exitCode int
}

// follow serves the program's stops until all its threads are gone.
func (t *tracer) follow() error {
	t.exitCode = -1
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-t.pid, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return nil
		case err != nil:
			unix.Kill(-t.pid, unix.SIGKILL)
			return fmt.Errorf("waiting for the traced program: %w", err)
		}
		if status.Exited() || status.Signaled() {
			delete(t.threads, tid)
			if tid == t.pid && status.Exited() {
				t.exitCode = status.ExitStatus()
			}
			continue
		}
		// A thread that was killed meanwhile is no longer there to answer.
		if err := t.stopped(tid, status); err != nil && !errors.Is(err, unix.ESRCH) {
			unix.Kill(-t.pid, unix.SIGKILL)
			return fmt.Errorf("tracing thread %d: %w", tid, err)
		}
	}
}

// stopped serves one stop and lets the thread go on.
func (t *tracer) stopped(tid int, status unix.WaitStatus) error {
	signal := status.StopSignal()
	th := t.threads[tid]
	switch {
	case th == nil && tid == t.pid:
		// The launcher has just been started.
		t.threads[tid] = &thread{}
		return errors.Join(unix.PtraceSetOptions(tid, unix.PTRACE_O_EXITKILL|
			unix.PTRACE_O_TRACESYSGOOD|unix.PTRACE_O_TRACESECCOMP|unix.PTRACE_O_TRACEEXEC|
			unix.PTRACE_O_TRACECLONE|unix.PTRACE_O_TRACEFORK|unix.PTRACE_O_TRACEVFORK), unix.PtraceCont(tid, 0))
	case th == nil:
		// A new thread starts with a stop of its own.
		t.threads[tid] = &thread{}
		return unix.PtraceCont(tid, 0)
	case signal == unix.SIGTRAP|0x80:
		return t.leave(tid, th)
	case signal == unix.SIGTRAP && status.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		return t.enter(tid, th)
	case signal == unix.SIGTRAP && status.TrapCause() > 0:
		if status.TrapCause() == unix.PTRACE_EVENT_EXEC {
			t.execed = true
		}
		return unix.PtraceCont(tid, 0)
	}
	// The program's own signals: Go preempts its threads with SIGURG.
	return unix.PtraceCont(tid, int(signal))
}

// enter serves a thread that is about to make a call of the table.
func (t *tracer) enter(tid int, th *thread) error {
	info, err := syscallInfo(tid)
	if err != nil {
		return err
	}
	call, ok := t.describe(tid, info)
	if !ok || t.killed {
		return unix.PtraceCont(tid, 0)
	}
	if t.opts.Enter != nil && t.opts.Enter(call) {
		// A call on which a fatal signal arrives in this stop is skipped.
		t.killed = true
		return unix.Kill(t.pid, unix.SIGKILL)
	}
	if t.opts.Exit == nil {
		return unix.PtraceCont(tid, 0)
	}
	th.call = &call
	return unix.PtraceSyscall(tid, 0)
}

// leave serves a thread whose call has been made.
func (t *tracer) leave(tid int, th *thread) error {
	info, err := syscallInfo(tid)
	if err != nil {
		return err
	}
	if call := th.call; call != nil && info.op == unix.PTRACE_SYSCALL_INFO_EXIT {
		th.call = nil
		result := int64(info.number)
		if result < 0 {
			t.opts.Exit(*call, -1, syscall.Errno(-result))
		} else {
			t.opts.Exit(*call, result, nil)
		}
	}
	return unix.PtraceCont(tid, 0)
}

// callInfo is struct ptrace_syscall_info of ptrace(2). In an exit stop,
// number holds the result.
type callInfo struct {
	op     uint8
	_      [3]uint8
	arch   uint32
	_      uint64 // instruction pointer
	_      uint64 // stack pointer
	number uint64
	args   [6]uint64
	_      uint64
}

func syscallInfo(tid int) (callInfo, error) {
	var info callInfo
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid),
		unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return info, errno
	}
	return info, nil
}
