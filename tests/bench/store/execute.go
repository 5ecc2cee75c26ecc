package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"runtime/debug"
	"time"
)

// usage is what one operation took: all its commands together.
type usage struct {
	wall     time.Duration
	cpu      time.Duration // user and system, of all threads and children
	peak     int64         // bytes: the largest resident set of one of its commands
	requests int64         // that a service got
	lines    int           // that were printed
}

func (u *usage) add(more usage) {
	u.wall += more.wall
	u.cpu += more.cpu
	u.peak = max(u.peak, more.peak)
	u.lines += more.lines
}

// output runs a command that isn't measured and returns what it wrote to standard
// output.
func output(ctx context.Context, c command) ([]byte, error) {
	var out bytes.Buffer
	_, err := execute(ctx, c, &out)
	return out.Bytes(), err
}

func runAll(ctx context.Context, commands []command) error {
	for _, c := range commands {
		if _, err := output(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// measured runs a command. What it writes to standard output is counted and not
// kept: a million lines would make this process large, and so all its children.
func measured(ctx context.Context, c command) (usage, error) {
	var out lines
	u, err := execute(ctx, c, &out)
	u.lines = out.number
	return u, err
}

func execute(ctx context.Context, c command, stdout io.Writer) (usage, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	// A child's peak counts this process's memory at the start, too.
	debug.FreeOSMemory()
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start)}
	if err != nil {
		return u, fmt.Errorf("%s %q: %w\n%s%s", c.path, c.args, err, stdout, stderr.Bytes())
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	u.peak = peakMemory(cmd.ProcessState)
	return u, nil
}

// lines counts lines, and keeps the last that was written.
type lines struct {
	number int
	last   []byte
}

// Write never fails.
func (l *lines) Write(p []byte) (int, error) {
	l.number += bytes.Count(p, []byte("\n"))
	l.last = append(l.last[:0], p...)
	return len(p), nil
}

// String returns the last that was written.
func (l *lines) String() string { return string(l.last) }
