// Package logs keeps a node's log where it outlives the boot: in a bounded ring of files
// on the state volume. Nobody can log in to a node, so that this is how an admin sees
// why it failed.
//
// The kernel's log has everything of a boot in its order: what the kernel says, what
// pcinit says, and what pcd says, which pcinit writes there. It is in memory. So it is
// copied from its beginning, as soon as there is a folder to copy it to, and goes on
// being copied. Where pcd doesn't run under pcinit, pcd gives the log its lines itself.
// What was saved of earlier boots' panics, and of crashes of pcd's, is copied too.
//
// docs/formats.md, "Node's log", describes the files.
package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/kernellog"
	"powercloud.unidatum.com/go/sys/pstore"
)

const (
	// DefaultBound is how many bytes of the disk a log takes at most.
	DefaultBound = 16 << 20
	// MinBound is the least that a log can be given: a segment is a sixteenth, and has
	// to hold a line.
	MinBound = 1 << 20
	// BootID is where the kernel names a boot.
	BootID = "/proc/sys/kernel/random/boot_id"
)

// KernelLog is what the kernel's log is read from. *kernellog.Reader is one.
type KernelLog interface {
	Next() (kernellog.Record, error)
	SetDeadline(time.Time) error
	Close() error
}

// Config is what a Log works with.
type Config struct {
	// Folder is where the ring is. It is made if it isn't there.
	Folder string
	// Bound is how many bytes the ring takes at most; DefaultBound if 0.
	Bound int64
	// Boot names this boot: ThisBoot returns it.
	Boot string
	// Kernel opens the kernel's log; nil leaves it out.
	Kernel func() (KernelLog, error)
	// Lines are what this process gives the log itself; nil if its output is in the
	// kernel's log.
	Lines *Lines
	// Panics is the file with the panics, and crashes of pcd's, of earlier boots that PID 1
	// has found, as in pstore.ReadKept; "" for none.
	Panics string
	// Log is told what fails. What it says may come back by Lines or the kernel's log.
	Log *slog.Logger
	// Now and Uptime tell the time, and how long the kernel has run; the real ones if
	// nil.
	Now    func() time.Time
	Uptime func() time.Duration
	// Quiet is how long what was logged may stay unsynced, and Urgent the same after a
	// warning or worse; 5 seconds and 1 second if 0.
	Quiet, Urgent time.Duration
	// Opening is how long a reader waits for a log that Run hasn't opened yet; 10 seconds
	// if 0.
	Opening time.Duration
}

// ThisBoot returns the name that the kernel has given to this boot.
func ThisBoot(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("tell this boot from others: %w", err)
	}
	name := strings.TrimSpace(string(text))
	if name == "" || len(name) > 64 {
		return "", fmt.Errorf("tell this boot from others: %s has no name of a boot", path)
	}
	return name, nil
}

// Log is a node's log. It is safe for use by several goroutines at once.
type Log struct {
	config Config
	// step is the ring's.
	step func(string) error
	// ready is closed once there is a ring.
	ready chan struct{}

	mu   sync.Mutex
	ring *ring
}

// New returns a log, which Run opens.
func New(c Config) (*Log, error) {
	if c.Bound == 0 {
		c.Bound = DefaultBound
	}
	if c.Bound < MinBound {
		return nil, fmt.Errorf("the node's log needs %d bytes at least, not %d", MinBound, c.Bound)
	}
	if c.Boot == "" || c.Folder == "" {
		return nil, errors.New("the node's log needs a folder and the name of this boot")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Lines == nil {
		c.Lines = NewLines()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Uptime == nil {
		c.Uptime = uptime
	}
	if c.Quiet == 0 {
		c.Quiet = 5 * time.Second
	}
	if c.Urgent == 0 {
		c.Urgent = time.Second
	}
	if c.Opening == 0 {
		c.Opening = 10 * time.Second
	}
	return &Log{config: c, step: func(string) error { return nil }, ready: make(chan struct{})}, nil
}

// uptime is the clock that the kernel stamps its records with.
func uptime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// opened returns the ring, nil before the first Run.
func (l *Log) opened() *ring {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ring
}

// Run copies into the ring until ctx is done, and then what is there already. The error
// is ctx's, or says why it can't go on; it can be called again then.
func (l *Log) Run(ctx context.Context) error {
	r, err := openRing(l.config.Folder, l.config.Boot, l.config.Bound, l.step)
	if err != nil {
		return err
	}
	// Before anybody reads: who asks for panics right after the start gets them.
	l.keepPanics(r)
	l.mu.Lock()
	before := l.ring
	l.ring = r
	l.mu.Unlock()
	if before != nil {
		before.retire()
	} else {
		close(l.ready)
	}
	c := &copying{log: l, ring: r}
	return errors.Join(c.run(ctx), r.close())
}

// keepPanics copies what earlier boots ended with. That it fails doesn't keep this
// boot from being logged.
func (l *Log) keepPanics(r *ring) {
	if l.config.Panics == "" {
		return
	}
	dumps, err := pstore.ReadKept(l.config.Panics)
	if err == nil {
		err = copyPanics(r, dumps)
	}
	if err != nil {
		l.config.Log.Warn("what earlier boots ended with can't be kept", "err", err)
	}
}

// openKernel opens the kernel's log; nil if there is none that this process may see.
func (l *Log) openKernel() (KernelLog, error) {
	if l.config.Kernel == nil {
		return nil, nil
	}
	kernel, err := l.config.Kernel()
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		l.config.Log.Info("the kernel's log isn't kept", "err", err)
		return nil, nil
	}
	return kernel, err
}

// ThisKernel opens the log of the kernel that this process runs on.
func ThisKernel() (KernelLog, error) {
	r, err := kernellog.OpenReader(kernellog.Path)
	if err != nil {
		return nil, err
	}
	return r, nil
}
