package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
)

// report is what was measured.
type report struct {
	opts options
	// accelerator executes instructions where time is measured.
	accelerator           string
	loadBefore, loadAfter string
	sizes                 []sizes
	results               results
	rebuilds              []time.Duration
}

// mebibytes is a number of bytes in MiB.
func mebibytes(bytes int64) string { return fmt.Sprintf("%.1f", float64(bytes)/(1<<20)) }

// millions is a number in millions.
func millions(n uint64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }

func (r report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, %s/%s; medians of %d rounds; load averages of the host %s before and %s after.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, r.opts.rounds, r.loadBefore, r.loadAfter)
	for _, write := range []func(io.Writer) error{r.writeSizes, r.writeStarts, r.writeRebuilds, r.writeTargets, r.writeNotes} {
		if err := write(out); err != nil {
			return err
		}
	}
	return nil
}

func (r report) writeSizes(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "system\tkernel MiB\tinitramfs MiB\tEFI file MiB\t")
	for _, s := range r.sizes {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t\n", s.System, mebibytes(s.Kernel), mebibytes(s.Initramfs), mebibytes(s.EFI))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// keys are what there may be results of, in the order of the report.
func keys() []key {
	return []key{{namePowerCloud, false}, {nameDebian, false}, {namePowerCloud, true}, {nameDebian, true}}
}

func (r report) writeStarts(out io.Writer) error {
	if len(r.results) == 0 {
		return nil
	}
	fmt.Fprintf(out, "From power-on to a moment, on a machine of %d MiB by %s; instructions by tcg.\n", memoryMiB, r.accelerator)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(w, "system\tnetwork\t")
	for _, m := range moments() {
		fmt.Fprintf(w, "%s s\t10^6 instructions\t", m.name)
	}
	fmt.Fprintln(w, "in use MiB\tof MemTotal MiB\t")
	for _, k := range keys() {
		m, ok := r.median(k)
		if !ok {
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t", k.system, map[bool]string{false: "no", true: "yes"}[k.card])
		for _, one := range moments() {
			fmt.Fprintf(w, "%.2f\t%s\t", m.elapsed[one.name].Seconds(), millions(m.instructions[one.name]))
		}
		used := "-"
		if m.told {
			used = mebibytes(m.used)
		}
		fmt.Fprintf(w, "%s\t%s\t\n", used, mebibytes(m.counted))
	}
	fmt.Fprintln(w)
	return w.Flush()
}

func (r report) writeRebuilds(out io.Writer) error {
	if len(r.rebuilds) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "From an edit of pcd to a new image: %.1f s.\n\n", figures.Median(r.rebuilds).Seconds())
	return err
}

func (r report) writeTargets(out io.Writer) error {
	return figures.WriteTargets(out, r.targets())
}

func (r report) writeNotes(out io.Writer) error {
	return figures.WriteNotes(out, [][2]string{
		{namePowerCloud, "the image of //disk, whose kernel has drivers for virtio and finds disk, card and balloon"},
		{nameDebian, "Debian 12's linux-image-cloud-amd64 with the same stub, command line and initramfs; its drivers for virtio are modules, which the initramfs hasn't got, so that it spends nothing on disk, card and balloon, and the node gets no address"},
		{"network", "with one, only powercloud's node gets addresses, and its banner waits until they stay as they are; the systems are compared without"},
		{momentBanner, "both wait three seconds in idleness before it"},
		{"in use", "the machine's memory less MemAvailable, what firmware and kernel keep included, as the balloon's driver tells; Debian's is a module"},
		{"of MemTotal", "MemTotal less MemAvailable, as pcd logs it on both systems"},
	})
}

// result is one measurement in the JSON report.
type result struct {
	System string `json:"system"`
	Card   bool   `json:"network"`
	Moment string `json:"moment"`
	// From power-on.
	Elapsed          float64   `json:"seconds"`
	ElapsedEach      []float64 `json:"seconds_each"`
	Instructions     uint64    `json:"instructions"`
	InstructionsEach []uint64  `json:"instructions_each"`
	// At the banner; the first is absent where the system has no driver for a balloon.
	Used    int64 `json:"used_bytes,omitempty"`
	Counted int64 `json:"used_of_total_bytes,omitempty"`
}

func (r report) resultList() []result {
	var list []result
	for _, k := range keys() {
		median, ok := r.median(k)
		if !ok {
			continue
		}
		for _, m := range moments() {
			one := result{System: k.system, Card: k.card, Moment: m.name,
				Elapsed: median.elapsed[m.name].Seconds(), Instructions: median.instructions[m.name]}
			for _, round := range r.results[k] {
				one.ElapsedEach = append(one.ElapsedEach, round.elapsed[m.name].Seconds())
				one.InstructionsEach = append(one.InstructionsEach, round.instructions[m.name])
			}
			if m.name == momentBanner {
				one.Used, one.Counted = median.used, median.counted
			}
			list = append(list, one)
		}
	}
	return list
}

func (r report) writeJSON(out io.Writer) error {
	var rebuilds []float64
	for _, took := range r.rebuilds {
		rebuilds = append(rebuilds, took.Seconds())
	}
	return figures.WriteJSON(out, struct {
		Cores       int              `json:"cores"`
		System      string           `json:"host"`
		Accelerator string           `json:"accelerator,omitempty"`
		LoadBefore  string           `json:"load_before"`
		LoadAfter   string           `json:"load_after"`
		Rounds      int              `json:"rounds"`
		Memory      int64            `json:"memory_bytes"`
		Sizes       []sizes          `json:"sizes"`
		Results     []result         `json:"results"`
		Rebuilds    []float64        `json:"rebuild_seconds_each,omitempty"`
		Targets     []figures.Target `json:"targets"`
	}{runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, r.accelerator, r.loadBefore, r.loadAfter, r.opts.rounds,
		memoryMiB << 20, r.sizes, r.resultList(), rebuilds, r.targets()})
}
