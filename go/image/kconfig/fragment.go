// Package kconfig merges fragments of a Linux configuration, each line of which
// states its reason, and tells which lines of them a built configuration lacks.
//
// The names and values are those of the kernel's own configuration language,
// see Documentation/kbuild/kconfig-language.rst in its source.
package kconfig

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// MaxSize is the largest fragment or configuration that is read, in bytes. A
// configuration of everything that Linux has is a third of it.
const MaxSize = 1 << 20

// A Value is a symbol's value as a configuration has it: y, m, n, a number in
// decimal or hexadecimal, or a text in double quotes. A symbol that isn't set is
// n: Linux makes no difference.
type Value string

// No is the value of a symbol that isn't set.
const No Value = "n"

// A Line is one line of a fragment.
type Line struct {
	// Symbol is the name without "CONFIG_".
	Symbol string
	Value  Value
	// Reason is why the line is there, in one line.
	Reason string
	// File and Number are where the line is; the first line is 1.
	File   string
	Number int
}

// String is the line's assignment as a fragment has it.
func (l Line) String() string { return "CONFIG_" + l.Symbol + "=" + string(l.Value) }

// A fragment's line, such as
//
//	CONFIG_NAMESPACES=y  # Every app has its own.
var fragmentLine = regexp.MustCompile(`^CONFIG_([A-Z0-9][A-Za-z0-9_]*)=([^"# ]+|"(?:[^"\\]|\\.)*") +# (\S(?:.*\S)?)$`)

var values = regexp.MustCompile(`^(?:y|n|-?(?:0|[1-9][0-9]*)|0x[0-9a-fA-F]+|"(?:[^"\\]|\\.)*")$`)

// ParseFragment reads a fragment. A line is empty, a comment that begins with
// "#", or an assignment that is followed by "#" and its reason. There are no
// modules, so that no value may be m.
func ParseFragment(file, content string) ([]Line, error) {
	if len(content) > MaxSize {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, MaxSize)
	}
	var lines []Line
	for i, text := range strings.Split(content, "\n") {
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := fragmentLine.FindStringSubmatch(text)
		if fields == nil {
			return nil, fmt.Errorf("%s:%d: %q is not of the form CONFIG_SYMBOL=VALUE  # Reason", file, i+1, text)
		}
		if !values.MatchString(fields[2]) {
			return nil, fmt.Errorf("%s:%d: %q is not y, n, a number or a text in quotes", file, i+1, fields[2])
		}
		lines = append(lines, Line{Symbol: fields[1], Value: Value(fields[2]), Reason: fields[3], File: file, Number: i + 1})
	}
	return lines, nil
}

// Merge puts fragments together. No symbol may be set twice, not even to the
// same value: one of the two lines would go unnoticed when the other changes.
func Merge(fragments ...[]Line) ([]Line, error) {
	merged := slices.Concat(fragments...)
	first := map[string]Line{}
	var twice []error
	for _, line := range merged {
		if other, ok := first[line.Symbol]; ok {
			twice = append(twice, fmt.Errorf("%s:%d: CONFIG_%s is set in %s:%d already", line.File, line.Number, line.Symbol, other.File, other.Number))
			continue
		}
		first[line.Symbol] = line
	}
	return merged, errors.Join(twice...)
}

// Format writes the lines as KCONFIG_ALLCONFIG takes them.
func Format(lines []Line) string {
	var b strings.Builder
	for _, line := range lines {
		if line.Value == No {
			fmt.Fprintf(&b, "# CONFIG_%s is not set\n", line.Symbol)
			continue
		}
		fmt.Fprintln(&b, line)
	}
	return b.String()
}
