package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"time"
)

// usage is what one operation took: all its commands together.
type usage struct {
	wall time.Duration
	cpu  time.Duration // user and system, of all threads and children
	peak int64         // bytes: the largest resident set of one of its commands
}

// key says what was measured.
type key struct {
	workload  string // "file" or "tree"
	dir       string
	locations int
	tool      string
	operation string // "put", "get" or "verify"
}

// results are the rounds of each measurement.
type results map[key][]usage

// execute runs a command and returns what it wrote to standard output.
func execute(ctx context.Context, c command) ([]byte, usage, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A child's peak counts this process's memory at the start, too.
	debug.FreeOSMemory()
	start := time.Now()
	err := cmd.Run()
	u := usage{wall: time.Since(start)}
	if err != nil {
		return nil, u, fmt.Errorf("%s %q: %w\n%s%s", c.path, c.args, err, stdout.Bytes(), stderr.Bytes())
	}
	u.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	u.peak = peakMemory(cmd.ProcessState)
	return stdout.Bytes(), u, nil
}

func output(ctx context.Context, c command) ([]byte, error) {
	out, _, err := execute(ctx, c)
	return out, err
}

func runAll(ctx context.Context, commands []command) error {
	for _, c := range commands {
		if _, err := output(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// workload is something that is stored.
type workload struct {
	name   string // "file" or "tree"
	dir    string // the directory that all of it happens in
	source string
}

// measureAll measures everything, round by round, so that what changes on the
// machine meanwhile touches all tools alike.
func measureAll(ctx context.Context, opts options, tools []tool, log func(string, ...any)) (results, error) {
	all := results{}
	for _, name := range opts.workloads {
		dirs := []string{opts.treeDir}
		switch name {
		case "file":
			dirs = opts.fileDirs
		case "tree":
		default:
			return nil, fmt.Errorf("--workloads: %q is neither file nor tree", name)
		}
		for _, dir := range dirs {
			if err := measureIn(ctx, opts, name, dir, tools, all, log); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

func measureIn(ctx context.Context, opts options, name, dir string, tools []tool, all results, log func(string, ...any)) error {
	top, err := os.MkdirTemp(dir, "powercloud-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	w := workload{name: name, dir: dir, source: filepath.Join(top, "source", name)}
	if err := makeSource(opts, w); err != nil {
		return err
	}
	for round := range opts.rounds {
		for _, locations := range opts.locations {
			for _, t := range tools {
				p := newPlace(filepath.Join(top, t.name), w, locations)
				log("round %d: %s in %s, %d location(s): %s", round+1, name, dir, locations, t.name)
				if err := measure(ctx, p, t, w, all, round == 0); err != nil {
					return fmt.Errorf("%s: %w", t.name, err)
				}
			}
		}
	}
	return nil
}

func newPlace(dir string, w workload, locations int) *place {
	p := &place{dir: dir, source: w.source, tree: w.name == "tree", out: filepath.Join(dir, "out")}
	for i := range locations {
		p.repos = append(p.repos, filepath.Join(dir, fmt.Sprintf("location-%d", i+1)))
	}
	return p
}

// measure lets one tool put, get and verify in a new place. The page cache is
// warm for all: what an operation reads is read once before it, and everything
// dirty is on the disk when it starts.
func measure(ctx context.Context, p *place, t tool, w workload, all results, compare bool) error {
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(p.dir)
	if t.setup != nil {
		if err := t.setup(ctx, p); err != nil {
			return err
		}
	}
	for _, op := range []struct {
		name    string
		prepare func(context.Context, *place) ([]command, error)
	}{{"put", t.put}, {"get", t.get}, {"verify", t.verify}} {
		if op.prepare == nil {
			continue
		}
		if op.name == "get" {
			if err := os.Mkdir(p.out, 0o700); err != nil {
				return err
			}
		}
		commands, err := op.prepare(ctx, p)
		if err != nil {
			return fmt.Errorf("%s: %w", op.name, err)
		}
		if err := errors.Join(warm(p.source), warm(p.dir)); err != nil {
			return err
		}
		var total usage
		flushDirty()
		for _, c := range commands {
			_, u, err := execute(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", op.name, err)
			}
			total.wall += u.wall
			total.cpu += u.cpu
			total.peak = max(total.peak, u.peak)
		}
		k := key{w.name, w.dir, len(p.repos), t.name, op.name}
		all[k] = append(all[k], total)
		if op.name == "get" {
			if compare {
				if err := same(w.source, below(p.out, p.source)); err != nil {
					return fmt.Errorf("get did not give back what was put: %w", err)
				}
			}
			if err := os.RemoveAll(p.out); err != nil {
				return err
			}
		}
	}
	return nil
}
