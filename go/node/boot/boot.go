package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/cgroup"
	"powercloud.unidatum.com/go/sys/mounts"
	"powercloud.unidatum.com/go/sys/power"
	"powercloud.unidatum.com/go/sys/powerbutton"
	"powercloud.unidatum.com/go/sys/random"
	"powercloud.unidatum.com/go/sys/reaper"
	"powercloud.unidatum.com/go/sys/sysctl"
)

// ending is why and how the machine's run ends.
type ending struct {
	action power.Action
	reason string
}

// system is PID 1 at work.
type system struct {
	machine Machine
	out     *output
	log     *slog.Logger
	alive   *liveness
	crashes *crashes
	// group makes pcd's control groups; nil where there are none.
	group func(start int) (*cgroup.Group, error)
	// watchdogs are those that run, the kernel's own last.
	watchdogs []guard
	// endings takes the first reason to end; others come too late.
	endings chan ending
	// over is closed once there is one.
	over  chan struct{}
	ended sync.Once
}

// Run is all that PID 1 does. It returns only when the machine can be neither
// rebooted nor switched off; for PID 1 to return is a kernel panic.
func Run(m Machine) error {
	// From the first moment on, so that no signal ends PID 1.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGINT, unix.SIGTERM, unix.SIGPWR, unix.SIGHUP, unix.SIGQUIT, unix.SIGPIPE)

	mountErr := mounts.All(m.Mounts)
	out, outErr := openOutput(m)
	s := &system{machine: m, out: out, log: out.logger(), alive: newLiveness(), endings: make(chan ending, 1), over: make(chan struct{})}
	defer out.dieLoudly()
	s.log.Info("pcinit begins")
	s.report("mounting isn't complete", mountErr)
	s.report("the output isn't complete", outErr)
	s.prepareCrash()

	background, stopBackground := context.WithCancel(context.Background())
	defer stopBackground()
	s.alive.expect("the start", 2*time.Minute+m.Timing.Entropy+m.Timing.Crashes(keptDumps+1))
	s.watchdogs = openWatchdogs(m, openDevice, s.log)
	for _, w := range s.watchdogs {
		go s.out.guard(func() { s.alive.feed(background, w, s.log) })
	}
	reap := reaper.New(nil)
	go s.out.guard(func() {
		if err := reap.Run(background); !errors.Is(err, context.Canceled) {
			panic(fmt.Sprintf("reaping ended: %v", err))
		}
	})
	// Before anything that may take minutes: a power button is heard then too.
	go s.out.guard(func() { s.listen(background, signals) })
	s.prepare()

	end := s.keepDaemon(background, reap)
	return s.end(end)
}

// report logs an error, if there is one, in one line a part; what this machine
// just hasn't got is no warning.
func (s *system) report(what string, err error) {
	if err == nil {
		return
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			s.report(what, e)
		}
		return
	}
	if errors.Is(err, mounts.ErrAbsent) {
		s.log.Info("done without", "err", err)
		return
	}
	s.log.Warn(what, "err", err)
}

// prepareCrash sees to it that descriptors 0 to 2 are something, and that what
// the Go runtime writes to standard error when it dies of an error that no
// recover catches reaches the kernel's log.
func (s *system) prepareCrash() {
	for fd := range 3 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			continue
		}
		// The lowest number that is free is the one that was missing. It stays
		// open for good.
		if _, err := unix.Open(os.DevNull, unix.O_RDWR, 0); err != nil {
			s.log.Warn("standard input or output is missing", "descriptor", fd, "err", err)
		}
	}
	for _, path := range s.machine.CrashOutput {
		f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOCTTY, 0)
		if err != nil {
			continue
		}
		err = unix.Dup3(int(f.Fd()), 2, 0)
		_ = f.Close()
		if err == nil {
			return
		}
	}
	s.log.Warn("last words of the Go runtime don't reach the kernel's log")
}

// prepare does what comes before pcd.
func (s *system) prepare() {
	m := s.machine
	s.report("the random number generator gets nothing from the machine", random.Mix(m.RandomDevice, m.RandomSources))
	for _, err := range sysctl.Apply(m.SysctlRoot, m.Settings) {
		if !errors.Is(err, sysctl.ErrAbsent) {
			s.log.Warn("the kernel isn't set up as it should be", "err", err)
		}
	}
	s.report("much memory is kept free", limitReserve(m.SysctlRoot, m.Memory))
	if m.HostName != "" {
		if err := unix.Sethostname([]byte(m.HostName)); err != nil {
			s.log.Warn("the host name can't be set", "name", m.HostName, "err", err)
		}
	}
	// pcd holds many connections and files.
	limit := &syscall.Rlimit{Cur: 65536, Max: 524288}
	s.report("pcd gets few file descriptors", syscall.Setrlimit(syscall.RLIMIT_NOFILE, limit))
	// Reboots at once otherwise; in a namespace it means nothing.
	s.report("Ctrl-Alt-Del reboots at once", power.CatchCtrlAltDel())
	s.prepareGroups()
	s.crashes = findCrashes(m, s.log)
	s.waitForEntropy()
	if wait := m.Timing.Crashes(s.crashes.panics); wait > 0 {
		s.log.Warn("the machine seems to be in a boot loop: pcd's start waits", "panics", s.crashes.panics, "wait", wait)
		select {
		case <-s.over:
		case <-time.After(wait):
		}
	}
	s.alive.done("the start")
}

// prepareGroups lets control groups limit what is in them.
func (s *system) prepareGroups() {
	missing, err := cgroup.Delegate(s.machine.CgroupRoot, "cpu", "memory", "pids", "io", "cpuset")
	if err == nil && len(missing) > 0 {
		s.log.Warn("the kernel lacks controllers", "missing", missing)
	}
	if err != nil {
		s.log.Warn("pcd runs without a control group", "err", err)
		return
	}
	s.group = func(start int) (*cgroup.Group, error) {
		return cgroup.Make(s.machine.CgroupRoot, fmt.Sprintf("pcd-%d", start))
	}
}

// waitForEntropy waits until random numbers are random.
func (s *system) waitForEntropy() {
	if ready, err := random.Ready(); ready || err != nil {
		s.report("nothing is known of the random number generator", err)
		return
	}
	s.log.Info("waiting for the random number generator")
	ctx, cancel := context.WithTimeout(context.Background(), s.machine.Timing.Entropy)
	defer cancel()
	if err := random.Wait(ctx); err != nil {
		// pcd will wait by itself where it needs them.
		s.log.Warn("the random number generator isn't ready; pcd starts nevertheless", "err", err)
	}
}

// listen makes endings of signals and of the power button.
func (s *system) listen(ctx context.Context, signals <-chan os.Signal) {
	go s.out.guard(func() {
		switch err := powerbutton.Wait(ctx, s.machine.PowerButtons); {
		case err == nil:
			s.wants(ending{power.Off, "the power button was pressed"})
		case errors.Is(err, powerbutton.ErrNone):
			s.log.Info("there is no power button to listen to")
		case ctx.Err() == nil:
			s.log.Warn("the power button isn't listened to any more", "err", err)
		}
	})
	for {
		select {
		case <-ctx.Done():
			return
		case received := <-signals:
			switch received {
			case unix.SIGINT:
				s.wants(ending{power.Reboot, "Ctrl-Alt-Del was pressed"})
			case unix.SIGTERM:
				s.wants(ending{power.Reboot, "PID 1 was asked to end"})
			case unix.SIGPWR:
				s.wants(ending{power.Off, "the power fails"})
			}
		}
	}
}

// wants takes a wish to end the machine's run. The first one counts.
func (s *system) wants(e ending) {
	s.ended.Do(func() {
		s.endings <- e
		close(s.over)
	})
}

// keepDaemon runs pcd until the machine's run is to end.
func (s *system) keepDaemon(ctx context.Context, reap *reaper.Reaper) ending {
	running, stop := context.WithCancel(ctx)
	defer stop()
	var good *time.Timer
	d := &daemon{
		machine: s.machine, reaper: reap, log: s.log, line: s.out.pcdLine, guard: s.out.guard,
		group: s.group, alive: s.alive,
		steady: func() {
			if line, needed := s.crashes.mark(); needed {
				s.out.kernel(s.out.own, line)
			}
		},
		ready: func(ready bool) {
			if good != nil {
				good.Stop()
				good = nil
			}
			if ready {
				good = time.AfterFunc(s.machine.Timing.Good, func() {
					s.out.guard(func() { s.out.kernel(s.out.own, s.crashes.forgive(s.log)) })
				})
			}
		},
		request: func(m notify.Message) {
			action := power.Reboot
			if m.Kind == notify.PowerOff {
				action = power.Off
			}
			s.wants(ending{action, "pcd asks for it: " + m.Text})
		},
	}
	var keeping sync.WaitGroup
	keeping.Go(func() { s.out.guard(func() { d.run(running) }) })
	e := <-s.endings
	s.log.Info("the machine's run ends", "action", e.action.String(), "reason", e.reason)
	stop()
	keeping.Wait()
	return e
}

// end ends what is left of processes and mounts, and then the machine.
func (s *system) end(e ending) error {
	s.alive.expect("the end", s.machine.Timing.Processes+2*time.Minute)
	if killed, err := power.EndProcesses(s.machine.Proc, s.machine.Timing.Processes); err != nil || killed > 0 {
		s.log.Warn("not every process ended by itself", "killed", killed, "err", err)
	}
	s.report("not everything could be unmounted", s.machine.Unmount())
	s.log.Info("good-bye", "action", e.action.String())
	s.out.consoles.Flush(5 * time.Second)
	if e.action == power.Off {
		// Some would switch the machine on again. A reboot that hangs is for those
		// that the kernel doesn't stop by itself, as it does most.
		for _, w := range s.watchdogs {
			s.report("a watchdog can't be stopped", w.Disarm())
		}
	}
	if err := s.machine.End(e.action); err != nil {
		s.log.Error("the machine's run can't be ended", "err", err)
		s.out.consoles.Flush(5 * time.Second)
		return err
	}
	return nil
}
