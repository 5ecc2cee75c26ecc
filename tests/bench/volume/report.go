package main

import (
	"fmt"
	"io"
	"runtime"
	"text/tabwriter"
	"time"

	"powercloud.unidatum.com/tests/bench/figures"
	"powercloud.unidatum.com/tests/bench/volume/transfer"
)

// report is what was measured.
type report struct {
	opts                  options
	accelerator           string
	loadBefore, loadAfter string
	// results are by the disks' speed.
	results map[int64]results
}

// row is a place in the report.
type row struct {
	Speed int64  `json:"disk_mib_per_second"`
	Place string `json:"place"`
	// Written and Read are medians in seconds, beside those of every round.
	Written     float64   `json:"written_seconds"`
	WrittenEach []float64 `json:"written_seconds_each"`
	Read        float64   `json:"read_seconds"`
	ReadEach    []float64 `json:"read_seconds_each"`
	// WriteFactor and ReadFactor are how many times as long as without encryption it
	// takes; 0 where there is nothing to compare.
	WriteFactor float64 `json:"write_factor,omitempty"`
	ReadFactor  float64 `json:"read_factor,omitempty"`
}

// rows are those of all speeds, in their order.
func (r report) rows() []row {
	var list []row
	for _, speed := range r.opts.speeds {
		done := map[string]row{}
		for _, name := range places() {
			samples := r.results[speed][name]
			if len(samples) == 0 {
				continue
			}
			one := row{Speed: speed, Place: name}
			one.Written, one.WrittenEach = seconds(durations(samples, func(s transfer.Sample) time.Duration { return s.Written }))
			one.Read, one.ReadEach = seconds(durations(samples, func(s transfer.Sample) time.Duration { return s.Read }))
			if other, ok := done[below(name)]; ok {
				one.WriteFactor, one.ReadFactor = one.Written/other.Written, one.Read/other.Read
			}
			done[name] = one
			list = append(list, one)
		}
	}
	return list
}

// seconds returns the median in seconds, and each.
func seconds(list []time.Duration) (median float64, each []float64) {
	for _, took := range list {
		each = append(each, took.Seconds())
	}
	return figures.Median(list).Seconds(), each
}

// most is how many times as long a write may take, to count as "about double".
const most = 2.5

// targets compares what was measured with what the specification says: "Writes cost
// about double. The integrity journal writes data twice."
func (r report) targets() []figures.Target {
	var list []figures.Target
	for _, one := range r.rows() {
		if one.WriteFactor == 0 {
			continue
		}
		for _, way := range []struct {
			name   string
			factor float64
		}{{"writes to", one.WriteFactor}, {"reads from", one.ReadFactor}} {
			list = append(list, figures.Target{
				What:     fmt.Sprintf("%s %s, beside %s, on %s", way.name, one.Place, below(one.Place), disks(one.Speed)),
				Wanted:   fmt.Sprintf("about double (< %.1f times)", most),
				Measured: fmt.Sprintf("%.2f times", way.factor),
				Met:      way.factor < most,
			})
		}
	}
	return list
}

func (r report) writeText(out io.Writer) error {
	fmt.Fprintf(out, "%d cores, %s/%s; a machine of %d processors by %s; medians of %d rounds of %d MiB; load averages of the host %s before and %s after.\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, r.opts.cpus, r.accelerator, r.opts.rounds, r.opts.size>>20, r.loadBefore, r.loadAfter)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "disk MiB/s\tplace\twritten MiB/s\tread MiB/s\twrites take times\treads take times\t")
	for _, one := range r.rows() {
		speed, writes, reads := "-", "-", "-"
		if one.Speed > 0 {
			speed = fmt.Sprint(one.Speed)
		}
		if one.WriteFactor > 0 {
			writes, reads = fmt.Sprintf("%.2f", one.WriteFactor), fmt.Sprintf("%.2f", one.ReadFactor)
		}
		mebibytes := float64(r.opts.size) / (1 << 20)
		fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%s\t%s\t\n", speed, one.Place, mebibytes/one.Written, mebibytes/one.Read, writes, reads)
	}
	fmt.Fprintln(w)
	if err := w.Flush(); err != nil {
		return err
	}
	if err := figures.WriteTargets(out, r.targets()); err != nil {
		return err
	}
	return figures.WriteNotes(out, [][2]string{
		{"disk", "a disk's speed, reads and writes together; - is as fast as the host can, where it is the processor that limits the volume"},
		{"times", "how many times as long it takes as at the same place without encryption"},
		{"about double", "the specification: \"Writes cost about double. The integrity journal writes data twice.\" It says nothing of reads, for which it is taken too"},
	})
}

func (r report) writeJSON(out io.Writer) error {
	return figures.WriteJSON(out, struct {
		Cores       int              `json:"cores"`
		System      string           `json:"host"`
		Accelerator string           `json:"accelerator"`
		LoadBefore  string           `json:"load_before"`
		LoadAfter   string           `json:"load_after"`
		CPUs        int              `json:"processors"`
		Rounds      int              `json:"rounds"`
		Bytes       int64            `json:"bytes"`
		Results     []row            `json:"results"`
		Targets     []figures.Target `json:"targets"`
	}{runtime.NumCPU(), runtime.GOOS + "/" + runtime.GOARCH, r.accelerator, r.loadBefore, r.loadAfter, r.opts.cpus, r.opts.rounds,
		r.opts.size, r.rows(), r.targets()})
}
