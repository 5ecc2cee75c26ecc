//go:build linux && (amd64 || arm64)

package ptrace

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Options say how a program is run and what is done at its calls. The
// functions are called by one goroutine, one at a time, while the calling
// thread stands still; other threads of the program go on.
type Options struct {
	Dir  string   // working directory; the caller's if empty
	Env  []string // the whole environment
	Args []string // argument 0 and the rest

	// Enter is called before each call. If it returns true, the program is
	// killed and the call is not made.
	Enter func(Call) (kill bool)

	// Exit, unless nil, is called after each call that was made, with its
	// result: a value of 0 or more, or the error.
	Exit func(c Call, result int64, err error)

	// Timeout ends a program that hangs; 0 means one minute.
	Timeout time.Duration
}

// Result is how a program ended.
type Result struct {
	ExitCode int  // -1 if a signal ended it
	Killed   bool // Enter asked for it
	Stdout   []byte
	Stderr   []byte
}

// Run starts the program at path and follows it to its end. The error is not
// nil when the program could not be traced or did not end in time; how it
// ended is in the result.
func Run(path string, opts Options) (Result, error) {
	if opts.Timeout == 0 {
		opts.Timeout = time.Minute
	}
	if opts.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return Result{}, err
		}
		opts.Dir = dir
	}
	type answer struct {
		result Result
		err    error
	}
	done := make(chan answer)
	go func() {
		// Every ptrace request must come from the thread that is the tracer.
		// It is not unlocked, so it ends with the goroutine.
		runtime.LockOSThread()
		result, err := run(path, opts)
		done <- answer{result, err}
	}()
	a := <-done
	return a.result, a.err
}

func run(path string, opts Options) (Result, error) {
	self, err := os.Executable()
	if err != nil {
		return Result{}, err
	}
	if path, err = exec.LookPath(path); err != nil {
		return Result{}, err
	}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return Result{}, err
	}
	defer stdin.Close()
	stdout, err := newCapture()
	if err != nil {
		return Result{}, err
	}
	defer stdout.close()
	stderr, err := newCapture()
	if err != nil {
		return Result{}, err
	}
	defer stderr.close()

	pid, err := syscall.ForkExec(self, append([]string{launcherName, opts.Dir, path}, opts.Args...), &syscall.ProcAttr{
		Env:   opts.Env,
		Files: []uintptr{stdin.Fd(), stdout.w.Fd(), stderr.w.Fd()},
		// A process group of its own lets this tracer wait for its own
		// threads only.
		Sys: &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return Result{}, fmt.Errorf("starting the launcher %s: %w", self, err)
	}
	t := &tracer{pid: pid, opts: opts, rules: rules(), threads: map[int]*thread{}}
	timer := time.AfterFunc(opts.Timeout, func() {
		t.timedOut.Store(true)
		unix.Kill(-pid, unix.SIGKILL)
	})
	err = t.follow()
	timer.Stop()
	result := Result{ExitCode: t.exitCode, Killed: t.killed, Stdout: stdout.read(), Stderr: stderr.read()}
	if err == nil && t.timedOut.Load() {
		err = fmt.Errorf("%s did not end within %v", path, opts.Timeout)
	}
	if err == nil && !t.execed && !t.killed {
		err = errors.New(string(bytes.TrimSpace(result.Stderr)))
	}
	return result, err
}

// capture keeps what the program writes to one of its outputs.
type capture struct {
	w    *os.File
	r    *os.File
	once sync.Once
	done chan []byte
}

func newCapture() (*capture, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c := &capture{w: w, r: r, done: make(chan []byte, 1)}
	go func() {
		data, _ := io.ReadAll(r)
		c.done <- data
	}()
	return c, nil
}

// read returns all output; it must only be called when the program has ended.
func (c *capture) read() []byte {
	c.once.Do(func() { c.w.Close() })
	return <-c.done
}

func (c *capture) close() {
	c.once.Do(func() { c.w.Close() })
	c.r.Close()
}
