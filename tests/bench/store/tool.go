package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// command is one program run that is measured.
type command struct {
	path string
	args []string
	dir  string
	env  []string // the whole environment
}

// place is where one tool works in one round. Everything is below dir, which
// is new and is removed afterwards.
type place struct {
	dir    string
	source string // the file or the tree that is stored; not below dir
	tree   bool
	// repos are the directories to store into, still absent, or the names of
	// empty buckets of the service.
	repos   []string
	service *service // nil for directories
	erasure bool     // the directories are parts of one erasure-coded set
	out     string   // the directory that get writes into, empty
	state   string   // what setup has learned, such as a key or a snapshot's ID
}

// env is an environment made from nothing, plus what the tool needs.
func (p *place) env(variables ...string) []string {
	return append([]string{"HOME=" + p.dir, "TMPDIR=" + p.dir, "LANG=C.UTF-8"}, variables...)
}

// tool is one competitor. An operation may be several commands; their times
// add up. setup, fill, forget and the preparation inside an operation's function
// are not measured. An operation that a tool does not have is nil.
type tool struct {
	name    string
	note    string // how it is run, for the report
	buckets bool   // it can store into S3 buckets
	setup   func(context.Context, *place) error
	put     operation
	get     operation
	verify  operation

	// fill stores many objects, the files of the source or, for a tool that
	// makes them itself, that many.
	fill func(context.Context, *place, workload, int) error
	// forget removes what the tool keeps on this machine of its repositories.
	forget func(*place) error
	list   operation
	check  operation
	gc     operation
}

// operation prepares what is to be measured.
type operation func(context.Context, *place) ([]command, error)

// operation returns one of those that a workload has, or nil.
func (t tool) operation(name string) operation {
	return map[string]operation{
		opPut: t.put, opGet: t.get, opVerify: t.verify,
		opCold: t.list, opWarm: t.list, opCheck: t.check, opGC: t.gc,
	}[name]
}

// takesPart reports whether the tool does a workload.
func (t tool) takesPart(w workload) bool {
	switch {
	case w.alone:
		return t.name == namePCCtl || t.name == nameRecovery
	case w.listed:
		return t.list != nil && t.name != namePlain
	case t.name == namePlain:
		return w.erasure
	case w.buckets:
		return t.buckets
	}
	return true
}

// The tools' names.
const (
	namePCCtl    = "pcctl"
	nameRecovery = "pcctl-recovery"
	namePlain    = "pcctl-plain"
	nameRestic   = "restic"
	nameKopia    = "kopia"
	nameRclone   = "rclone"
	nameCopy     = "cp"
	nameCopySync = "cp-sync"
	nameCeiling  = "ceiling"
	nameArgon    = "argon2id"
)

func toolNames() []string {
	return []string{namePCCtl, nameRecovery, namePlain, nameRestic, nameKopia, nameRclone, nameCopy, nameCopySync, nameCeiling, nameArgon}
}

// prepareTools builds what has to be built and returns the tools in the order
// of toolNames.
func prepareTools(ctx context.Context, opts options, log func(string, ...any)) ([]tool, error) {
	for _, name := range opts.tools {
		if !slices.Contains(toolNames(), name) {
			return nil, fmt.Errorf("--tools: no tool %q; there are %s", name, strings.Join(toolNames(), ", "))
		}
	}
	b := builder{opts: opts, log: log}
	var tools []tool
	for _, name := range toolNames() {
		if !slices.Contains(opts.tools, name) {
			continue
		}
		t, err := b.tool(ctx, name)
		if err != nil {
			return nil, err
		}
		t.name = name
		tools = append(tools, t)
	}
	return tools, nil
}

func (b builder) tool(ctx context.Context, name string) (tool, error) {
	switch name {
	case namePCCtl, nameRecovery, namePlain:
		path, err := b.pcctl(ctx)
		return pcctl(path, name), err
	case nameRestic:
		path, err := b.peer(ctx, name)
		return restic(path), err
	case nameKopia:
		path, err := b.peer(ctx, name)
		return kopia(path), err
	case nameRclone:
		path, err := b.peer(ctx, name)
		return rclone(path), err
	case nameCopy, nameCopySync:
		return copyTool(name == nameCopySync)
	case nameCeiling:
		return ceiling()
	}
	return argon()
}

// below returns the only entry's path that a tool restores a source to.
func below(dir, source string) string { return filepath.Join(dir, filepath.Base(source)) }

// toolNotes says of each tool how it is run.
func toolNotes() [][2]string {
	copying, _ := copyTool(false)
	syncing, _ := copyTool(true)
	bare, _ := ceiling()
	derivation, _ := argon()
	return [][2]string{
		{namePCCtl, pcctl("", namePCCtl).note}, {nameRecovery, pcctl("", nameRecovery).note}, {namePlain, pcctl("", namePlain).note},
		{nameRestic, restic("").note}, {nameKopia, kopia("").note}, {nameRclone, rclone("").note},
		{nameCopy, copying.note}, {nameCopySync, syncing.note}, {nameCeiling, bare.note}, {nameArgon, derivation.note},
	}
}
