// Package figures is what benchmark programs do and report alike: turns, how busy the
// host is, medians, targets, and what their words mean.
package figures

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

// Target is something that what is measured should reach.
type Target struct {
	What     string `json:"what"`
	Wanted   string `json:"wanted"`
	Measured string `json:"measured"`
	Met      bool   `json:"met"`
}

// Median returns the middle of a list, which it leaves as it is and which must not be
// empty: of an even number the mean of the two in the middle, rounded down.
func Median[T ~int64 | ~uint64](list []T) T {
	list = slices.Clone(list)
	slices.Sort(list)
	half := len(list) / 2
	if len(list)%2 == 0 {
		return (list[half-1] + list[half]) / 2
	}
	return list[half]
}

// InTurn returns what is measured in the order of a round: who is first in one is last in
// the next.
func InTurn[T any](list []T, round int) []T {
	list = slices.Clone(list)
	if round%2 == 1 {
		slices.Reverse(list)
	}
	return list
}

// Load returns the host's load averages over 1, 5 and 15 minutes, as Linux writes them.
func Load() (string, error) {
	content, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "", fmt.Errorf("find out how busy the host is: %w", err)
	}
	return parseLoad(string(content))
}

// parseLoad takes the averages out of what /proc/loadavg has.
func parseLoad(content string) (string, error) {
	fields := strings.Fields(content)
	if len(fields) < 3 {
		return "", fmt.Errorf("find out how busy the host is: /proc/loadavg has %q", content)
	}
	return strings.Join(fields[:3], " "), nil
}

// WriteTargets writes a table of targets.
func WriteTargets(out io.Writer, targets []Target) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "target\twanted\tmeasured\t")
	for _, t := range targets {
		verdict := "met"
		if !t.Met {
			verdict = "MISSED"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", t.What, t.Wanted, t.Measured, verdict)
	}
	fmt.Fprintln(w)
	return w.Flush()
}

// WriteNotes writes what words mean: each note is a word and its meaning.
func WriteNotes(out io.Writer, notes [][2]string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, note := range notes {
		fmt.Fprintf(w, "%s\t%s\n", note[0], note[1])
	}
	return w.Flush()
}
