package logs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"powercloud.unidatum.com/go/sys/kernellog"
)

const (
	// lastLook is how long the kernel's log is still read when the copying ends.
	lastLook = 50 * time.Millisecond
	// waiting is how many records wait to be copied together.
	waiting = 256
)

// copying is one run of a Log.
type copying struct {
	log  *Log
	ring *ring
	// due is when to sync; zero when everything is synced.
	due time.Time
	// synced is when the last sync was.
	synced time.Time
	// dropped is how many records found no room on the disk.
	dropped int
}

// read is what reading the kernel's log gave.
type read struct {
	record kernellog.Record
	err    error
}

// run copies until ctx is done.
func (c *copying) run(ctx context.Context) error {
	kernel, err := c.log.openKernel()
	if err != nil {
		return err
	}
	// Without the kernel's log it stays nil and never has anything.
	var records chan read
	if kernel != nil {
		records = make(chan read, waiting)
		stop := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			readKernel(kernel, records, stop)
		}()
		defer func() {
			close(stop)
			// It may wait for a record that never comes.
			_ = kernel.SetDeadline(time.Unix(1, 0))
			<-ended
			_ = kernel.Close()
		}()
	}
	if err := c.loop(ctx, records); err != nil {
		return err
	}
	if kernel != nil {
		if err := kernel.SetDeadline(time.Now().Add(lastLook)); err != nil {
			return err
		}
		for r := range records {
			if err := c.take(r, records); err != nil {
				return err
			}
		}
	}
	return errors.Join(c.takeOwn(), ctx.Err())
}

// readKernel passes on records, or what isn't one, until the deadline.
func readKernel(kernel KernelLog, records chan<- read, stop <-chan struct{}) {
	defer close(records)
	for {
		record, err := kernel.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return
		}
		select {
		case records <- read{record, err}:
		case <-stop:
			return
		}
		if err != nil && !errors.Is(err, kernellog.ErrMalformed) {
			return
		}
	}
}

// loop copies what comes until ctx is done, which is no error.
func (c *copying) loop(ctx context.Context, records <-chan read) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var wake <-chan time.Time
		if !c.due.IsZero() {
			timer.Reset(time.Until(c.due))
			wake = timer.C
		}
		var err error
		select {
		case <-ctx.Done():
			return nil
		case r, open := <-records:
			if !open {
				return errors.New("reading the kernel's log has ended")
			}
			err = c.take(r, records)
		case <-c.log.config.Lines.some:
			err = c.takeOwn()
		case <-wake:
			err = c.sync()
		}
		if err != nil {
			return err
		}
	}
}

// take copies a record of the kernel's and what else is there already.
func (c *copying) take(r read, more <-chan read) error {
	started := c.log.config.Now().Add(-c.log.config.Uptime())
	sequence := c.ring.sequence
	var entries []entry
	for open := true; open; {
		switch {
		case errors.Is(r.err, kernellog.ErrMalformed):
			entries = append(entries, entry{Record: note(c.log.config.Now(), "%v", r.err)})
		case r.err != nil:
			return errors.Join(c.append(entries), r.err)
		case r.record.Sequence < sequence:
			// It is in the ring since before pcd was started again.
		default:
			if missing := r.record.Sequence - sequence; missing > 0 {
				entries = append(entries, lost(started.Add(r.record.Uptime), "%d records of the kernel's log were lost before they could be copied", int(min(missing, math.MaxInt32))))
			}
			e := fromKernel(r.record, started)
			entries, sequence = append(entries, e), e.Sequence
		}
		if len(entries) >= waiting {
			break
		}
		select {
		case r, open = <-more:
		default:
			open = false
		}
	}
	return c.append(entries)
}

// takeOwn copies the lines that this process has given.
func (c *copying) takeOwn() error {
	records, dropped := c.log.config.Lines.take()
	entries := make([]entry, 0, len(records)+1)
	for _, r := range records {
		entries = append(entries, entry{Record: r})
	}
	if dropped > 0 {
		entries = append(entries, lost(c.log.config.Now(), "%d lines of pcd's were lost before they could be copied", dropped))
	}
	return c.append(entries)
}

// append writes entries. If the disk is full of other things, they are dropped and
// counted.
func (c *copying) append(entries []entry) error {
	if len(entries) == 0 {
		return nil
	}
	if c.dropped > 0 {
		entries = append([]entry{lost(c.log.config.Now(), "%d records were lost while the disk was full", c.dropped)}, entries...)
	}
	var lines []line
	urgent := false
	for _, e := range entries {
		l, err := e.encode()
		if err != nil {
			return err
		}
		lines = append(lines, l)
		urgent = urgent || e.Level <= Warning
	}
	written, err := c.ring.append(lines)
	if written > 0 && c.dropped > 0 {
		c.log.config.Log.Info("the node's log is written again", "lost", c.dropped)
		c.dropped = 0
	}
	if written > 0 {
		c.plan(urgent)
	}
	if full(err) {
		c.drop(lines[written:], err)
		return nil
	}
	return err
}

// drop leaves out lines that found no room. That is said once: saying it makes more of
// them.
func (c *copying) drop(lines []line, err error) {
	if c.dropped == 0 {
		c.log.config.Log.Warn("the disk is full: the node's log isn't written", "err", err)
	}
	// The first line stands for what was dropped before, if there was any.
	c.dropped = 0
	for _, l := range lines {
		c.dropped += l.records
		c.ring.sequence = max(c.ring.sequence, l.sequence)
	}
}

// plan decides when to sync.
func (c *copying) plan(urgent bool) {
	now := time.Now()
	due := now.Add(c.log.config.Quiet)
	if urgent {
		// At once, if the last one is long enough ago.
		due = c.synced.Add(c.log.config.Urgent)
	}
	if c.due.IsZero() || due.Before(c.due) {
		c.due = due
	}
}

// sync makes everything outlast a power cut.
func (c *copying) sync() error {
	c.due = time.Time{}
	if err := c.ring.sync(); err != nil {
		return fmt.Errorf("keep the node's log: %w", err)
	}
	c.synced = time.Now()
	return nil
}
