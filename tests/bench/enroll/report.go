package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

// What a node may take, on a machine whose instructions QEMU translates.
const (
	longestEnrolled = 3 * time.Second
	longestOpen     = 5 * time.Second
)

// report is what was measured.
type report struct {
	opts                  options
	accelerator           string
	loadBefore, loadAfter string
	rounds                []times
}

// each returns a figure of every round.
func (r report) each(f figure) []time.Duration {
	var list []time.Duration
	for _, round := range r.rounds {
		list = append(list, round[f])
	}
	return list
}

func (r report) targets() []figures.Target {
	var list []figures.Target
	for _, t := range []struct {
		what    string
		figure  figure
		longest time.Duration
	}{
		{"from the enrollment code to the answer that the node is a member", enrolled, longestEnrolled},
		{"from the unlock to the first answer of the open API", opened, longestOpen},
	} {
		took := figures.Median(r.each(t.figure))
		list = append(list, figures.Target{
			What:     t.what,
			Wanted:   fmt.Sprintf("< %v", t.longest),
			Measured: fmt.Sprintf("%.2fs", took.Seconds()),
			Met:      took < t.longest,
		})
	}
	return list
}

func (r report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, %s/%s; machines by %s; medians of %d rounds; load averages of the host %s before and %s after.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, r.accelerator, len(r.rounds), r.loadBefore, r.loadAfter)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tmedian s\tshortest s\tlongest s\t")
	for _, f := range allFigures() {
		shortest, longest := r.rounds[0][f], r.rounds[0][f]
		for _, took := range r.each(f) {
			shortest, longest = min(shortest, took), max(longest, took)
		}
		fmt.Fprintf(w, "%s\t%.2f\t%.2f\t%.2f\t\n", f, figures.Median(r.each(f)).Seconds(), shortest.Seconds(), longest.Seconds())
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := figures.WriteTargets(out, r.targets()); err != nil {
		return err
	}
	return figures.WriteNotes(out, [][2]string{
		{string(enrolled), "from pcctl's first request, which proves that it knows the code, to the node's answer that it is a member; the cluster is opened by its recovery key"},
		{string(enrollment), "of that, the request with which the node makes its volume"},
		{string(opened), "after a restart, from sending the volume's key to the answer to node info"},
		{string(unlock), "of that, the request with the key"},
	})
}

// result is a figure in the JSON report, in seconds.
type result struct {
	Figure figure    `json:"figure"`
	Median float64   `json:"seconds"`
	Each   []float64 `json:"seconds_each"`
}

func (r report) writeJSON(out io.Writer) error {
	var results []result
	for _, f := range allFigures() {
		one := result{Figure: f, Median: figures.Median(r.each(f)).Seconds()}
		for _, took := range r.each(f) {
			one.Each = append(one.Each, took.Seconds())
		}
		results = append(results, one)
	}
	return figures.WriteJSON(out, struct {
		Cores       int              `json:"cores"`
		System      string           `json:"host"`
		Accelerator string           `json:"accelerator"`
		LoadBefore  string           `json:"load_before"`
		LoadAfter   string           `json:"load_after"`
		Results     []result         `json:"results"`
		Targets     []figures.Target `json:"targets"`
	}{runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, r.accelerator, r.loadBefore, r.loadAfter, results, r.targets()})
}
