package main

import (
	"fmt"
	"slices"
	"strings"
)

// workload is something that is stored, and where.
type workload struct {
	name    string
	tree    bool // many files, not one
	buckets bool // into buckets behind a proxy that answers late
	erasure bool // pcctl stores into one erasure-coded set of directories
	listed  bool // there are many objects already; what is measured goes through them
	alone   bool // only pcctl does it
}

func workloads() []workload {
	return []workload{
		{name: "file"},
		{name: "tree", tree: true},
		{name: "s3-file", buckets: true},
		{name: "s3-tree", tree: true, buckets: true},
		{name: "ec-file", erasure: true},
		{name: "list", tree: true, listed: true},
		{name: "list-large", tree: true, listed: true, alone: true},
	}
}

func workloadNames() []string {
	var names []string
	for _, w := range workloads() {
		names = append(names, w.name)
	}
	return names
}

// workloadNamed returns the zero workload for a name that there is not.
func workloadNamed(name string) workload {
	i := slices.IndexFunc(workloads(), func(w workload) bool { return w.name == name })
	if i < 0 {
		return workload{}
	}
	return workloads()[i]
}

func checkWorkloads(names []string) error {
	for _, name := range names {
		if workloadNamed(name).name == "" {
			return fmt.Errorf("--workloads: no workload %q; there are %s", name, strings.Join(workloadNames(), ", "))
		}
	}
	return nil
}

// The erasure-coded set: any four of six directories rebuild what it holds.
const (
	erasureData  = 4
	erasureParts = 6
)

// The operations that are measured. Of a listing, cold is without what the tool
// keeps on this machine, and warm is right after that.
const (
	opPut    = "put"
	opGet    = "get"
	opVerify = "verify"
	opCold   = "ls cold"
	opWarm   = "ls warm"
	opCheck  = "check"
	opGC     = "gc"
)

// operations are those of the workload, in their order.
func (w workload) operations() []string {
	switch {
	case w.alone:
		return []string{opCold, opWarm}
	case w.listed:
		return []string{opCold, opWarm, opCheck, opGC}
	}
	return []string{opPut, opGet, opVerify}
}

// dirs are the directories that the workload is measured in, one after the other.
func (w workload) dirs(opts options) []string {
	if w.tree || w.buckets {
		return []string{opts.treeDir}
	}
	return opts.fileDirs
}

// locations are the numbers of directories or buckets to store into.
func (w workload) locations(opts options) []int {
	switch {
	case w.erasure:
		return []int{erasureParts}
	case w.alone:
		return []int{1}
	case w.buckets:
		return opts.buckets
	}
	return opts.locations
}

// objects is how many objects the workload has.
func (w workload) objects(opts options) int {
	switch {
	case w.alone:
		return opts.largeObjects
	case w.listed:
		return opts.objects
	case w.tree:
		return opts.files
	}
	return 1
}

// describe says what is stored, and into how many of what.
func (w workload) describe(opts options, locations int) string {
	what := fmt.Sprintf("one file of %v", opts.size)
	switch {
	case w.listed:
		what = fmt.Sprintf("%d objects", w.objects(opts))
	case w.tree:
		what = fmt.Sprintf("%d files of %v", opts.files, opts.fileSize)
	}
	kind, kinds := "directory", "directories"
	if w.buckets {
		kind, kinds = "bucket", "buckets"
	}
	into := fmt.Sprintf("%d %s", locations, kinds)
	switch {
	case w.erasure:
		into = fmt.Sprintf("an erasure-coded set ec:%d of %d directories (all but %s and %s: one directory)",
			erasureData, locations, namePCCtl, nameRecovery)
	case locations == 1:
		into = "one " + kind
	}
	if w.buckets {
		into += fmt.Sprintf(" with %v of added latency", opts.latency)
	}
	if w.listed {
		return what + " in " + into
	}
	return what + " into " + into
}
