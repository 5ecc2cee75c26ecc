package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// key says what was measured.
type key struct {
	workload  string
	dir       string
	locations int
	tool      string
	operation string
}

// results are the rounds of each measurement.
type results map[key][]usage

// bench is a run of the benchmark.
type bench struct {
	opts    options
	tools   []tool
	log     func(string, ...any)
	results results
}

// measureAll measures everything, round by round, so that what changes on the
// machine meanwhile touches all tools alike.
func measureAll(ctx context.Context, opts options, tools []tool, log func(string, ...any)) (results, error) {
	b := &bench{opts: opts, tools: tools, log: log, results: results{}}
	for _, name := range opts.workloads {
		w := workloadNamed(name)
		for _, dir := range w.dirs(opts) {
			if err := b.measureIn(ctx, w, dir); err != nil {
				return nil, err
			}
		}
	}
	return b.results, nil
}

// measureIn measures a workload in one directory.
func (b *bench) measureIn(ctx context.Context, w workload, dir string) error {
	top, err := os.MkdirTemp(dir, "powercloud-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(top)
	source := filepath.Join(top, "source", w.name)
	if err := makeSource(b.opts, w, source); err != nil {
		return err
	}
	for _, locations := range w.locations(b.opts) {
		m := &measurement{bench: b, workload: w, dir: dir, top: top, source: source, locations: locations}
		run := m.store
		if w.listed {
			run = m.list
		}
		if err := run(ctx); err != nil {
			return err
		}
	}
	return nil
}

// measurement is a workload with one number of locations in one directory.
type measurement struct {
	*bench
	workload  workload
	dir       string
	top       string // a directory of the measurement's own in dir
	source    string
	locations int
}

// takingPart returns the tools that do the workload.
func (m *measurement) takingPart() []tool {
	var list []tool
	for _, t := range m.tools {
		if t.takesPart(m.workload) {
			list = append(list, t)
		}
	}
	return list
}

// newPlace makes and sets up a place for a tool. The caller leaves it, also when
// that failed.
func (m *measurement) newPlace(ctx context.Context, t tool) (*place, error) {
	dir := filepath.Join(m.top, t.name)
	p := &place{dir: dir, source: m.source, tree: m.workload.tree, out: filepath.Join(dir, "out")}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return p, err
	}
	number := m.locations
	if m.workload.erasure {
		p.erasure = t.name == namePCCtl || t.name == nameRecovery
		if !p.erasure {
			number = 1
		}
	}
	for i := range number {
		name := fmt.Sprintf("location-%d", i+1)
		if !m.workload.buckets {
			name = filepath.Join(dir, name)
		}
		p.repos = append(p.repos, name)
	}
	if m.workload.buckets {
		var err error
		if p.service, err = startService(dir, p.repos, m.opts.latency); err != nil {
			return p, err
		}
	}
	if t.setup != nil {
		return p, t.setup(ctx, p)
	}
	return p, nil
}

// leave ends a place and gives what it takes of the disk back.
func (p *place) leave() error {
	var err error
	if p.service != nil {
		err = p.service.stop()
	}
	err = errors.Join(err, p.discard(p.dir))
	if p.tree {
		return err
	}
	// The next tool needs the name.
	aside, asideErr := os.MkdirTemp(filepath.Dir(p.dir), "left-")
	if asideErr != nil {
		return errors.Join(err, asideErr)
	}
	return errors.Join(err, os.Rename(p.dir, filepath.Join(aside, filepath.Base(p.dir))))
}

// discard gives back what a part of the place takes of the disk. Where there are many
// files they are removed, or else emptied.
func (p *place) discard(path string) error {
	if p.tree {
		return os.RemoveAll(path)
	}
	return empty(path)
}

// empty truncates all files of a tree. To remove them would cost whoever makes files
// next: for five minutes ext4 looks at every inode that was freed before it gives a
// new one. They are removed when the workload is done.
func empty(tree string) error {
	return filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		// Some tools write-protect what they store.
		return errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 0))
	})
}

// operate measures one operation.
func (m *measurement) operate(ctx context.Context, t tool, p *place, name string) error {
	commands, err := t.operation(name)(ctx, p)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if name != opWarm {
		// The page cache is warm for all: what an operation reads is read once
		// before it, and everything dirty is on the disk when it starts.
		if err := errors.Join(warm(p.source), warm(p.dir)); err != nil {
			return err
		}
		flushDirty()
	}
	p.service.taken()
	var total usage
	for _, c := range commands {
		u, err := measured(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		total.add(u)
	}
	requests := p.service.taken()
	for _, n := range requests {
		total.requests += int64(n)
	}
	if p.service != nil {
		m.log("  %s: %.2f s, requests: %v", name, total.wall.Seconds(), requests)
	}
	if listing := name == opCold || name == opWarm; listing && total.lines < m.workload.objects(m.opts) {
		return fmt.Errorf("%s printed %d lines for %d objects", name, total.lines, m.workload.objects(m.opts))
	}
	k := key{m.workload.name, m.dir, m.locations, t.name, name}
	m.results[k] = append(m.results[k], total)
	return nil
}

// store lets the tools put, get and verify in new places, round by round.
func (m *measurement) store(ctx context.Context) error {
	for round := range m.opts.rounds {
		for _, t := range m.takingPart() {
			m.log("round %d: %s in %s, %d location(s): %s", round+1, m.workload.name, m.dir, m.locations, t.name)
			p, err := m.newPlace(ctx, t)
			if err == nil {
				err = m.storeIn(ctx, t, p, round == 0)
			}
			if err = errors.Join(err, p.leave()); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return nil
}

// storeIn lets one tool put, get and verify.
func (m *measurement) storeIn(ctx context.Context, t tool, p *place, compare bool) error {
	for _, op := range m.workload.operations() {
		if t.operation(op) == nil {
			continue
		}
		if op == opGet {
			if err := os.Mkdir(p.out, 0o700); err != nil {
				return err
			}
		}
		if err := m.operate(ctx, t, p, op); err != nil {
			return err
		}
		if op != opGet {
			continue
		}
		if compare {
			if err := same(p.source, below(p.out, p.source)); err != nil {
				return fmt.Errorf("get did not give back what was put: %w", err)
			}
		}
		if err := p.discard(p.out); err != nil {
			return err
		}
	}
	return nil
}

// list lets the tools go through many objects, round by round. Storing those takes
// long and is not measured: it is done once.
func (m *measurement) list(ctx context.Context) error {
	if !m.workload.alone {
		return m.listWith(ctx, m.takingPart())
	}
	// One after the other: a million objects take 5 GiB of a file system in
	// memory.
	for _, t := range m.takingPart() {
		if err := m.listWith(ctx, []tool{t}); err != nil {
			return err
		}
	}
	return nil
}

func (m *measurement) listWith(ctx context.Context, tools []tool) (err error) {
	places := make([]*place, len(tools))
	for i, t := range tools {
		m.log("storing for %s in %s, %d location(s): %s", m.workload.name, m.dir, m.locations, t.name)
		places[i], err = m.newPlace(ctx, t)
		defer func() { err = errors.Join(err, places[i].leave()) }()
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		if err := t.fill(ctx, places[i], m.workload, m.workload.objects(m.opts)); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	for round := range m.opts.rounds {
		for i, t := range tools {
			m.log("round %d: %s in %s, %d location(s): %s", round+1, m.workload.name, m.dir, m.locations, t.name)
			if err := m.listIn(ctx, t, places[i]); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	return nil
}

// listIn lets one tool go through many objects.
func (m *measurement) listIn(ctx context.Context, t tool, p *place) error {
	for _, op := range m.workload.operations() {
		if t.operation(op) == nil {
			continue
		}
		if op == opCold && t.forget != nil {
			if err := t.forget(p); err != nil {
				return err
			}
		}
		if err := m.operate(ctx, t, p, op); err != nil {
			return err
		}
	}
	return nil
}
