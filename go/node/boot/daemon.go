package boot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/node/backoff"
	"powercloud.unidatum.com/go/node/notify"
	"powercloud.unidatum.com/go/sys/cgroup"
	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/go/sys/reaper"
)

// beat is how often the daemon's keeper says that it gets on.
const beat = 10 * time.Second

// wordsFile is where the last lines of a pcd that died are kept, and those with which
// its crash began, in the run directory.
const wordsFile = "pcd-last-words.log"

// daemon keeps pcd running.
type daemon struct {
	machine Machine
	reaper  *reaper.Reaper
	log     *slog.Logger
	// line takes each line that pcd writes.
	line func(string)
	// guard runs what a goroutine does, so that its panic isn't silent.
	guard func(func())
	// group makes a control group for a start of pcd, counted from 1; it is nil
	// where there are no control groups. Each start has one of its own: Linux
	// 6.1.176 was seen to kill whatever is started right into a group whose
	// processes were killed before.
	group func(start int) (*cgroup.Group, error)
	// starts counts them.
	starts int
	// saved is whether the firmware was given last words in this boot: its flash
	// memory wears out.
	saved bool
	alive *liveness
	// steady is called when pcd was started, and every so often.
	steady func()
	// ready is called when pcd says that it is ready, and again when it isn't
	// any more.
	ready func(bool)
	// request is called when pcd asks for a reboot or power-off.
	request func(notify.Message)
}

// instance is one run of pcd.
type instance struct {
	child    *reaper.Child
	conn     *notify.Conn
	messages chan notify.Message
	// written is closed when nobody can write to pcd's output any more.
	written chan struct{}
	words   tail
	// group is nil without control groups.
	group *cgroup.Group
}

// run starts pcd again and again until ctx is done, and then stops it.
func (d *daemon) run(ctx context.Context) {
	defer d.alive.done("pcd's keeper")
	waits := backoff.New(d.machine.Timing.Restart)
	for ctx.Err() == nil {
		d.alive.expect("pcd's keeper", 3*beat)
		began := time.Now()
		outcome := d.once(ctx)
		d.ready(false)
		if ctx.Err() != nil {
			return
		}
		wait := waits.Ended(time.Since(began))
		d.log.Error("pcd "+outcome+" and will be started again",
			"ran", time.Since(began).Round(time.Millisecond), "wait", wait, "failures", waits.Failures())
		d.pause(ctx, wait)
	}
}

// pause waits.
func (d *daemon) pause(ctx context.Context, wait time.Duration) {
	d.alive.expect("pcd's keeper", wait+3*beat)
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// once runs pcd once, and says how it ended.
func (d *daemon) once(ctx context.Context) string {
	i, err := d.start()
	if err != nil {
		return fmt.Sprintf("can't be started (%v)", err)
	}
	d.watch(ctx, i)
	status := i.child.Status()
	d.clear(i)
	if err := i.conn.Close(); err != nil {
		d.log.Warn("the connection with pcd can't be closed", "err", err)
	}
	if ctx.Err() == nil {
		if err := keep(d.machine.RunDir, wordsFile, i.words.text()); err != nil {
			d.log.Warn("pcd's last words can't be kept in memory", "err", err)
		}
		d.save(reaper.Describe(status), &i.words)
	}
	return reaper.Describe(status)
}

// save has the firmware keep how pcd ended, and what it said last, for the next boot.
func (d *daemon) save(outcome string, words *tail) {
	if d.saved {
		return
	}
	// A failure isn't tried again either: it may have worn the memory too.
	d.saved = true
	if err := pstore.Save(d.machine.Variables, time.Now(), wordsToSave(outcome, words)); err != nil {
		d.log.Warn("the next boot won't know pcd's last words", "err", err)
	}
}

// start starts pcd with its output and its end of the connection.
func (d *daemon) start() (*instance, error) {
	in, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = write.Close() }()
	conn, theirs, err := notify.Pair()
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	defer func() { _ = theirs.Close() }()

	attributes := &syscall.ProcAttr{
		Dir:   "/",
		Env:   append(d.machine.Environment[:len(d.machine.Environment):len(d.machine.Environment)], notify.Variable+"="+notify.Value),
		Files: []uintptr{in.Fd(), write.Fd(), write.Fd(), theirs.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	}
	group, folder := d.makeGroup()
	if group != nil {
		defer func() { _ = folder.Close() }()
		attributes.Sys.UseCgroupFD, attributes.Sys.CgroupFD = true, int(folder.Fd())
	}
	child, err := d.reaper.Start(d.machine.Program, d.machine.Arguments, attributes)
	if err != nil && group != nil {
		// It may be the group's fault.
		d.log.Warn("pcd runs without a control group", "err", errors.Join(err, group.Remove()))
		group, attributes.Sys.UseCgroupFD = nil, false
		child, err = d.reaper.Start(d.machine.Program, d.machine.Arguments, attributes)
	}
	if err != nil {
		return nil, errors.Join(err, read.Close(), conn.Close())
	}
	i := &instance{child: child, conn: conn, messages: make(chan notify.Message), written: make(chan struct{}), group: group}
	go d.guard(func() {
		defer close(i.written)
		defer func() { _ = read.Close() }()
		readLines(read, func(line string, begins bool) {
			i.words.add(line, begins)
			d.line(line)
		})
	})
	go d.guard(func() { d.receive(i) })
	d.log.Info("pcd was started", "pid", child.PID)
	return i, nil
}

// makeGroup makes the control group for this start. Without one, pcd runs where
// PID 1 does: that is better than not at all.
func (d *daemon) makeGroup() (*cgroup.Group, *os.File) {
	if d.group == nil {
		return nil, nil
	}
	d.starts++
	group, err := d.group(d.starts)
	if err == nil {
		var folder *os.File
		if folder, err = group.Open(); err == nil {
			return group, folder
		}
	}
	d.log.Warn("pcd runs without a control group", "err", err)
	return nil, nil
}

// receive passes on what pcd says until its end of the connection is closed.
func (d *daemon) receive(i *instance) {
	defer close(i.messages)
	garbage := 0
	for {
		m, err := i.conn.Receive()
		switch {
		case errors.Is(err, notify.ErrMalformed):
			if garbage++; garbage == 1 {
				d.log.Warn("pcd said something that isn't understood", "err", err)
			}
			continue
		case err != nil:
			return
		}
		select {
		case i.messages <- m:
		case <-i.child.Done():
			return
		}
	}
}

// watch waits until pcd has ended, and ends it when it is frozen or ctx is done.
func (d *daemon) watch(ctx context.Context, i *instance) {
	frozen := time.NewTimer(d.machine.Timing.Frozen)
	defer frozen.Stop()
	steady := time.NewTicker(beat)
	defer steady.Stop()
	messages, stop := i.messages, ctx.Done()
	d.steady()
	for {
		d.alive.expect("pcd's keeper", 3*beat+d.machine.Timing.Dump)
		select {
		case <-i.child.Done():
			return
		case m, open := <-messages:
			if !open {
				messages = nil
				continue
			}
			frozen.Reset(d.machine.Timing.Frozen)
			d.hear(m)
		case <-frozen.C:
			d.log.Error("pcd is frozen and will be killed", "silent", d.machine.Timing.Frozen)
			d.kill(i)
			return
		case <-stop:
			d.stop(i)
			return
		case <-steady.C:
			d.steady()
		}
	}
}

// hear does what a message asks for.
func (d *daemon) hear(m notify.Message) {
	switch m.Kind {
	case notify.Ready:
		d.log.Info("pcd is ready", "version", m.Text)
		d.ready(true)
	case notify.Reboot, notify.PowerOff:
		d.request(m)
	}
}

// stop asks pcd to end, and kills it when it doesn't.
func (d *daemon) stop(i *instance) {
	d.alive.expect("pcd's keeper", d.machine.Timing.Stop+d.machine.Timing.Dump+3*beat)
	if err := i.conn.Send(notify.Message{Kind: notify.Stop, Text: "the machine stops"}); err != nil {
		d.log.Warn("pcd can't be told to stop", "err", err)
	}
	d.signal(i, unix.SIGTERM)
	select {
	case <-i.child.Done():
	case <-time.After(d.machine.Timing.Stop):
		d.log.Error("pcd doesn't stop and will be killed", "waited", d.machine.Timing.Stop)
		d.kill(i)
	}
}

// kill ends pcd after it had the chance to write its stacks: Go programs do that
// at SIGQUIT.
func (d *daemon) kill(i *instance) {
	d.signal(i, unix.SIGQUIT)
	select {
	case <-i.child.Done():
	case <-time.After(d.machine.Timing.Dump):
		d.signal(i, unix.SIGKILL)
		<-i.child.Done()
	}
}

func (d *daemon) signal(i *instance, s syscall.Signal) {
	if err := d.reaper.Signal(i.child, s); err != nil && !errors.Is(err, reaper.ErrEnded) {
		d.log.Warn("pcd can't be signalled", "err", err)
	}
}

// clear ends what pcd has left behind in its group, and takes in the last of its
// output.
func (d *daemon) clear(i *instance) {
	if i.group != nil {
		ctx, cancel := context.WithTimeout(context.Background(), d.machine.Timing.Dump)
		defer cancel()
		if err := errors.Join(i.group.Kill(), i.group.WaitEmpty(ctx), i.group.Remove()); err != nil {
			d.log.Warn("what pcd has left running can't be ended", "err", err)
		}
	}
	select {
	case <-i.written:
	case <-time.After(d.machine.Timing.Dump):
		d.log.Warn("something that pcd has left running still holds its output")
	}
}
