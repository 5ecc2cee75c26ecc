// Package hardening knows which settings the Kernel Self-Protection Project
// recommends for a Linux kernel, and compares a kernel with them: its configuration,
// its command line, and the parameters that the first program sets.
package hardening

import (
	"fmt"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/image/kconfig"
	"powercloud.unidatum.com/go/sys/sysctl"
)

// Kind is where a setting is made.
type Kind string

const (
	// Symbol is one of the kernel's configuration, named without "CONFIG_".
	Symbol Kind = "symbol"
	// Option is a word of the kernel's command line.
	Option Kind = "command line"
	// Parameter is one of the kernel's that is set while it runs, named with dots as
	// sysctl(8) does.
	Parameter Kind = "sysctl"
)

const (
	// Absent is the value of an option or a parameter that isn't set.
	Absent kconfig.Value = "absent"
	// Present is that of an option that is there without a value.
	Present kconfig.Value = "present"
)

// A Setting is something that can be set.
type Setting struct {
	Kind Kind
	Name string
}

// String is the setting as documents name it.
func (s Setting) String() string {
	if s.Kind == Symbol {
		return "`CONFIG_" + s.Name + "`"
	}
	return fmt.Sprintf("`%s` (%s)", s.Name, s.Kind)
}

// A Recommendation is a setting that the project recommends.
type Recommendation struct {
	Setting
	// Value is the recommended value. Where that is y, a kernel that doesn't
	// know the symbol departs from it.
	Value kconfig.Value
	// Architecture is "amd64", "arm64", or empty for both.
	Architecture string
	// If, when not empty, is a symbol without which the setting has no meaning.
	If string
	// Or are symbols of which one that is y does as well.
	Or []string
	// List is for a symbol whose value is a list in quotes, with commas. The kernel's
	// may hold more than the recommended value does, in any order.
	List bool
	// Unless is for an option or a parameter that isn't set: a symbol with the value
	// that makes it unnecessary, since it gives the default or leaves out what is to
	// be forbidden. It is empty where nothing does.
	Unless kconfig.Line
}

// A Departure is a setting that differs from what is recommended.
type Departure struct {
	Setting
	Recommended, Here kconfig.Value
	Architecture      string
}

// String is the departure in one line.
func (d Departure) String() string {
	return fmt.Sprintf("%s: %s is %s where %s is recommended", d.Architecture, d.Setting, d.Here, d.Recommended)
}

// A Kernel is what is compared. Its command line is the one that is built into it.
type Kernel struct {
	// Architecture is "amd64" or "arm64".
	Architecture string
	Config       kconfig.Config
	// Parameters are those that the first program sets.
	Parameters []sysctl.Setting
}

// Departures returns where a kernel departs from the recommendations, sorted as
// [Recommendations] is.
func Departures(k Kernel) []Departure {
	set := k.settings()
	var found []Departure
	for _, r := range Recommendations() {
		if r.Architecture != "" && r.Architecture != k.Architecture || r.If != "" && k.Config.Get(r.If) == kconfig.No {
			continue
		}
		here, ok := set[r.Setting]
		switch {
		case r.Kind == Symbol:
			here = k.Config.Get(r.Name)
			if slices.ContainsFunc(r.Or, func(symbol string) bool { return k.Config.Get(symbol) == "y" }) || r.List && holds(here, r.Value) {
				continue
			}
		case !ok && r.Unless.Symbol != "" && k.Config.Get(r.Unless.Symbol) == r.Unless.Value:
			continue
		case !ok:
			here = Absent
		}
		if here != r.Value {
			found = append(found, Departure{Setting: r.Setting, Recommended: r.Value, Here: here, Architecture: k.Architecture})
		}
	}
	return found
}

// holds tells whether a list has every word of another one.
func holds(list, words kconfig.Value) bool {
	split := func(v kconfig.Value) []string { return strings.Split(strings.Trim(string(v), `"`), ",") }
	there := split(list)
	return !slices.ContainsFunc(split(words), func(word string) bool { return !slices.Contains(there, word) })
}

// settings returns the options and the parameters that are set. Of an option that is
// there several times, the last counts.
func (k Kernel) settings() map[Setting]kconfig.Value {
	set := map[Setting]kconfig.Value{}
	for _, word := range strings.Fields(strings.Trim(string(k.Config.Get("CMDLINE")), `"`)) {
		name, value, found := strings.Cut(word, "=")
		if !found {
			value = string(Present)
		}
		// Linux takes both for the same.
		name = strings.ReplaceAll(name, "-", "_")
		set[Setting{Option, name}] = kconfig.Value(value)
	}
	for _, p := range k.Parameters {
		set[Setting{Parameter, strings.ReplaceAll(p.Name, "/", ".")}] = kconfig.Value(p.Value)
	}
	return set
}
