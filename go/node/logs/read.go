package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// Boot says which part of the log is meant.
type Boot string

// The parts.
const (
	// Current is this boot.
	Current Boot = "current"
	// Previous is the last boot before this one that has left something, and after it
	// the panics and the crashes of pcd's that were found since.
	Previous Boot = "previous"
	// Panic are the kernel's panics that were found last, whenever that was.
	Panic Boot = "panic"
)

// ErrNotOpen is wrapped by errors for a log that was waited for and isn't open.
var ErrNotOpen = errors.New("the node's log isn't open yet")

// ErrOptions is wrapped by errors for options that are unknown or exclude each other.
var ErrOptions = errors.New("the log can't be read like this")

// Options say what to read.
type Options struct {
	// Boot is Current if empty.
	Boot Boot
	// Follow waits for what is logged later. Only Current can be followed.
	Follow bool
	// Bytes is how much of what is there is read at most, in bytes of the log's files:
	// the newest. 0 is all of it.
	Bytes int64
}

// chunk is how many bytes are read from a file at once. A line is shorter.
const chunk = 256 << 10

// Read calls each for every record, oldest first, until there are no more, or until ctx
// is done if they are to be followed. A log that isn't open yet is waited for, for
// Config.Opening: who has just unlocked a node may ask at once. What each returns ends it; the error is that one,
// or ctx's. A slow reader holds up nobody: what the log gave up before it was read is
// told of by a record of SourceLog, and so is what can't be read.
func (l *Log) Read(ctx context.Context, o Options, each func(Record) error) error {
	if o.Boot == "" {
		o.Boot = Current
	}
	if o.Follow && o.Boot != Current {
		return fmt.Errorf("%w: only the current boot can be followed", ErrOptions)
	}
	if o.Bytes < 0 {
		return fmt.Errorf("%w: a negative number of bytes", ErrOptions)
	}
	r, err := l.await(ctx)
	if err != nil {
		return err
	}
	all := r.snapshot()
	wanted, err := choose(o.Boot, l.config.Boot, all)
	if err != nil {
		return err
	}
	reading := &reading{log: l, each: each, wanted: wanted}
	end := reading.begin(all, o.Bytes)
	for ctx.Err() == nil {
		p, ok, more := l.opened().find(wanted, reading.at)
		if !o.Follow && (!ok || p.at >= end) {
			return reading.finish(end)
		}
		if !ok {
			if err := reading.flush(); err != nil {
				return err
			}
			select {
			case <-ctx.Done():
			case <-more:
			}
			continue
		}
		if err := reading.piece(ctx, p); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// await returns the ring once there is one.
func (l *Log) await(ctx context.Context) (*ring, error) {
	if r := l.opened(); r != nil {
		return r, nil
	}
	late := time.NewTimer(l.config.Opening)
	defer late.Stop()
	select {
	case <-l.ready:
		return l.opened(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-late.C:
		return nil, ErrNotOpen
	}
}

// choose returns which segments are read.
func choose(b Boot, current string, all []segment) (func(segment) bool, error) {
	is := func(k kind, boot string) func(segment) bool {
		return func(s segment) bool { return s.Kind == k && s.Boot == boot }
	}
	// last is the boot of the last segment that fits.
	last := func(fits func(segment) bool) string {
		boot := ""
		for _, s := range all {
			if fits(s) {
				boot = s.Boot
			}
		}
		return boot
	}
	switch b {
	case Current:
		return is(kindBoot, current), nil
	case Previous:
		previous := is(kindBoot, last(func(s segment) bool { return s.Kind == kindBoot && s.Boot != current }))
		return func(s segment) bool { return previous(s) || s.Kind.found() && s.Boot == current }, nil
	case Panic:
		return is(kindPanic, last(func(s segment) bool { return s.Kind == kindPanic })), nil
	}
	return nil, fmt.Errorf("%w: there is no part %q", ErrOptions, string(b))
}

// reading is one reader at work.
type reading struct {
	log    *Log
	each   func(Record) error
	wanted func(segment) bool
	// at is how far it has come, since the ring's beginning.
	at int64
	// partial tells that it may stand within a line, which it leaves out.
	partial bool
	// unread is how many bytes weren't understood since the last record.
	unread int64
}

// begin finds where to begin, and returns where to end if it isn't to follow. most is
// how many bytes are read at most, 0 all.
func (r *reading) begin(all []segment, most int64) (end int64) {
	var size int64
	var chosen []segment
	for _, s := range all {
		// Where there is nothing yet, what comes is after everything that there is.
		r.at = s.end()
		if r.wanted(s) {
			chosen = append(chosen, s)
			size += s.size
		}
	}
	if len(chosen) == 0 {
		return r.at
	}
	end = chosen[len(chosen)-1].end()
	if most == 0 || size <= most {
		r.at = chosen[0].start
		if chosen[0].Kind == kindBoot {
			// So that it is told what was given up since.
			r.at = chosen[0].First
		}
		return end
	}
	for size-chosen[0].size >= most {
		size -= chosen[0].size
		chosen = chosen[1:]
	}
	r.at = chosen[0].start + size - most
	r.partial = r.at > chosen[0].start
	return end
}

// piece reads on from a place.
func (r *reading) piece(ctx context.Context, p position) error {
	size := min(p.segment.end()-p.at, chunk)
	content, err := readAt(r.log.config.Folder, p.segment.start, p.at-p.segment.start, size)
	if errors.Is(err, fs.ErrNotExist) && !r.log.opened().has(p.segment) {
		// It was given up in the meantime. The next look tells how much is gone.
		return nil
	}
	if p.lost > 0 {
		r.partial = false
		if err := r.tell(givenUp, p.lost); err != nil {
			return err
		}
	}
	r.at = p.at
	if err != nil {
		r.unread += size
		r.at, r.partial = p.at+size, true
		return nil
	}
	return r.lines(ctx, p, content)
}

// lines gives the whole lines of a piece.
func (r *reading) lines(ctx context.Context, p position, content []byte) error {
	whole := bytes.LastIndexByte(content, '\n') + 1
	if whole == 0 {
		// The end of a segment that was torn, or no log at all.
		r.unread += int64(len(content))
		r.at += int64(len(content))
		return nil
	}
	atEnd := p.at+int64(len(content)) == p.segment.end() && whole < len(content)
	for line := range bytes.Lines(content[:whole]) {
		if err := ctx.Err(); err != nil {
			return err
		}
		heading := r.at == p.segment.start
		r.at += int64(len(line))
		if heading || r.partial {
			r.partial = false
			continue
		}
		e, err := decodeEntry(line[:len(line)-1])
		if err != nil {
			r.unread += int64(len(line))
			continue
		}
		if err := r.flush(); err != nil {
			return err
		}
		if err := r.each(e.Record); err != nil {
			return err
		}
	}
	if atEnd {
		r.unread += int64(len(content) - whole)
		r.at += int64(len(content) - whole)
	}
	return nil
}

// finish tells of what is missing at the end.
func (r *reading) finish(end int64) error {
	if err := r.flush(); err != nil || r.at >= end {
		return err
	}
	return r.tell(givenUp, end-r.at)
}

// givenUp says how much was removed too early for a reader.
const givenUp = "%d bytes of the log were given up before they could be read"

// flush tells of what wasn't understood.
func (r *reading) flush() error {
	if r.unread == 0 {
		return nil
	}
	n := r.unread
	r.unread = 0
	return r.tell("%d bytes of the log can't be read", n)
}

// tell says what isn't there.
func (r *reading) tell(format string, bytes int64) error {
	return r.each(note(time.Now(), format, bytes))
}
