package main

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

// report is what was measured, and what was wanted.
type report struct {
	opts    options
	results results
}

func newReport(opts options, r results) report { return report{opts, r} }

// median returns the medians of the rounds, each figure by itself.
func (r report) median(k key) (usage, bool) {
	rounds := r.results[k]
	if len(rounds) == 0 {
		return usage{}, false
	}
	return usage{
		wall: medianOf(rounds, func(u usage) time.Duration { return u.wall }),
		cpu:  medianOf(rounds, func(u usage) time.Duration { return u.cpu }),
		peak: medianOf(rounds, func(u usage) int64 { return u.peak }),

		requests: medianOf(rounds, func(u usage) int64 { return u.requests }),
	}, true
}

func medianOf[T ~int64](rounds []usage, figure func(usage) T) T {
	var list []T
	for _, u := range rounds {
		list = append(list, figure(u))
	}
	return figures.Median(list)
}

// table is the part of a report that is one workload in one directory.
type table struct {
	workload, dir string
	locations     int
}

func (r report) tables() []table {
	var list []table
	for k := range r.results {
		if t := (table{k.workload, k.dir, k.locations}); !slices.Contains(list, t) {
			list = append(list, t)
		}
	}
	slices.SortFunc(list, func(a, b table) int {
		return cmp.Or(cmp.Compare(a.workload, b.workload), cmp.Compare(a.dir, b.dir), cmp.Compare(a.locations, b.locations))
	})
	return list
}

func (t table) key(tool, operation string) key {
	return key{t.workload, t.dir, t.locations, tool, operation}
}

// of is the workload that a table is of.
func (t table) of() workload { return workloadNamed(t.workload) }

// copied reports whether a table compares with cp -r.
func (t table) copied() bool {
	w := t.of()
	return w.tree && !w.buckets && !w.listed
}

func (r report) describe(t table) string {
	return fmt.Sprintf("%s, in %s", t.of().describe(r.opts, t.locations), t.dir)
}

func (r report) writeText(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d cores, %s/%s; medians of %d rounds; page cache warm for all: what an operation reads is read once before it, and what is dirty is synced; free memory was used once before. The memory of a process is never shown as less than this program's own.\n",
		cores(), runtime.GOOS, runtime.GOARCH, r.opts.rounds)
	for _, t := range r.tables() {
		fmt.Fprintf(w, "\n%s\n", r.describe(t))
		fmt.Fprint(w, "tool\t")
		for _, op := range t.of().operations() {
			fmt.Fprintf(w, "%s s\tCPU s\tMiB\t", op)
			if t.of().buckets {
				fmt.Fprint(w, "requests\t")
			}
		}
		if t.copied() {
			fmt.Fprint(w, "put / cp -r\tget / cp -r\t")
		}
		fmt.Fprintln(w)
		for _, tool := range toolNames() {
			r.writeRow(w, t, tool)
		}
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := figures.WriteTargets(out, r.targets()); err != nil {
		return err
	}
	return r.writeNotes(out)
}

func (r report) writeRow(w io.Writer, t table, tool string) {
	operations := t.of().operations()
	if _, ok := r.median(t.key(tool, operations[0])); !ok {
		return
	}
	fmt.Fprintf(w, "%s\t", tool)
	for _, op := range operations {
		u, ok := r.median(t.key(tool, op))
		if ok {
			fmt.Fprintf(w, "%.2f\t%.2f\t%d\t", u.wall.Seconds(), u.cpu.Seconds(), u.peak>>20)
		} else {
			fmt.Fprint(w, "-\t-\t-\t")
		}
		switch {
		case t.of().buckets && ok:
			fmt.Fprintf(w, "%d\t", u.requests)
		case t.of().buckets:
			fmt.Fprint(w, "-\t")
		}
	}
	if t.copied() {
		for _, op := range operations[:2] {
			own, ok := r.median(t.key(tool, op))
			copied, okCopy := r.median(t.key(nameCopy, op))
			if ok && okCopy {
				fmt.Fprintf(w, "%.1f\t", own.wall.Seconds()/copied.wall.Seconds())
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
	}
	fmt.Fprintln(w)
}

func (r report) writeNotes(out io.Writer) error {
	var notes [][2]string
	for _, note := range toolNotes() {
		if slices.Contains(r.opts.tools, note[0]) {
			notes = append(notes, note)
		}
	}
	return figures.WriteNotes(out, notes)
}

// result is one measurement in the JSON report.
type result struct {
	Workload  string    `json:"workload"`
	Dir       string    `json:"dir"`
	Locations int       `json:"locations"`
	Tool      string    `json:"tool"`
	Operation string    `json:"operation"`
	Wall      float64   `json:"wall_seconds"`
	CPU       float64   `json:"cpu_seconds"`
	Peak      int64     `json:"peak_bytes"`
	Requests  int64     `json:"requests,omitempty"`
	Walls     []float64 `json:"wall_seconds_each"`
}

func (r report) writeJSON(out io.Writer) error {
	var list []result
	for _, t := range r.tables() {
		for _, tool := range toolNames() {
			for _, op := range t.of().operations() {
				k := t.key(tool, op)
				u, ok := r.median(k)
				if !ok {
					continue
				}
				one := result{Workload: t.workload, Dir: t.dir, Locations: t.locations, Tool: tool, Operation: op,
					Wall: u.wall.Seconds(), CPU: u.cpu.Seconds(), Peak: u.peak, Requests: u.requests}
				for _, round := range r.results[k] {
					one.Walls = append(one.Walls, round.wall.Seconds())
				}
				list = append(list, one)
			}
		}
	}
	return figures.WriteJSON(out, struct {
		Cores    int              `json:"cores"`
		System   string           `json:"system"`
		Rounds   int              `json:"rounds"`
		Size     int64            `json:"file_bytes"`
		Files    int              `json:"tree_files"`
		FileSize int64            `json:"tree_file_bytes"`
		Objects  int              `json:"list_objects"`
		Large    int              `json:"list_large_objects"`
		Latency  float64          `json:"latency_seconds"`
		Results  []result         `json:"results"`
		Targets  []figures.Target `json:"targets"`
	}{cores(), runtime.GOOS + "/" + runtime.GOARCH, r.opts.rounds, int64(r.opts.size), r.opts.files, int64(r.opts.fileSize),
		r.opts.objects, r.opts.largeObjects, r.opts.latency.Seconds(), list, r.targets()})
}
