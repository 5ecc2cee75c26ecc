package kconfig

import (
	"maps"
	"strings"
	"testing"
)

const fragment = `# A heading.

CONFIG_A=y  # On.
CONFIG_B_2=n  # Off.
CONFIG_C=-1 # A number.
CONFIG_D=0x1F  # Another one.
CONFIG_E="# \"x\""  # A text.
`

func TestParseFragment(t *testing.T) {
	lines, err := ParseFragment("x.config", fragment)
	if err != nil {
		t.Fatal(err)
	}
	if len(lines) != 5 {
		t.Fatalf("it has %d lines: %v", len(lines), lines)
	}
	if want := (Line{Symbol: "A", Value: "y", Reason: "On.", File: "x.config", Number: 3}); lines[0] != want {
		t.Errorf("the first line is %+v, want %+v", lines[0], want)
	}
	want := "CONFIG_A=y\n# CONFIG_B_2 is not set\nCONFIG_C=-1\nCONFIG_D=0x1F\nCONFIG_E=\"# \\\"x\\\"\"\n"
	if got := Format(lines); got != want {
		t.Errorf("it is formatted as %q, want %q", got, want)
	}
}

func TestParseFragmentRefuses(t *testing.T) {
	for bad, want := range map[string]string{
		"CONFIG_A=y":                 `x:2: "CONFIG_A=y" is not of the form`,
		"CONFIG_A=y #":               "is not of the form",
		"CONFIG_A=y  #Reason":        "is not of the form",
		"CONFIG_A=m  # A module.":    `x:2: "m" is not y, n, a number or a text`,
		"CONFIG_A=yes  # Wrong.":     `"yes" is not y`,
		"CONFIG_A=007  # Wrong.":     `"007" is not y`,
		"CONFIG_A=\"x  # Open.":      "is not of the form",
		"CONFIG_A=  # Empty.":        "is not of the form",
		"CONFIG_=y  # No name.":      "is not of the form",
		"config_A=y  # Wrong.":       "is not of the form",
		" CONFIG_A=y  # Moved in.":   "is not of the form",
		"CONFIG_A=y  # On.\r":        "is not of the form",
		strings.Repeat("#\n", 1<<20): "larger than",
	} {
		_, err := ParseFragment("x", "# First.\n"+bad+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: the error is %v, want one with %q", bad, err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	one := []Line{{Symbol: "A", Value: "y", File: "one", Number: 1}, {Symbol: "B", Value: "n", File: "one", Number: 2}}
	two := []Line{{Symbol: "C", Value: "y", File: "two", Number: 1}}
	merged, err := Merge(one, two)
	if err != nil || len(merged) != 3 {
		t.Errorf("they are merged as %v, %v", merged, err)
	}
	two = append(two, Line{Symbol: "A", Value: "y", File: "two", Number: 2}, Line{Symbol: "B", Value: "y", File: "two", Number: 3})
	_, err = Merge(one, two)
	want := "two:2: CONFIG_A is set in one:1 already\ntwo:3: CONFIG_B is set in one:2 already"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v, want %s", err, want)
	}
}

const config = `#
# Automatically generated file; DO NOT EDIT.
#
CONFIG_A=y
# CONFIG_B is not set
CONFIG_C=-1
CONFIG_D=0x1F
CONFIG_E="# \"x\""
CONFIG_M=m
# end of everything
`

func TestCheck(t *testing.T) {
	parsed, err := ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	good := Config{"A": "y", "B": "n", "C": "-1", "D": "0x1F", "E": `"# \"x\""`, "F": "n"}
	if err := Check(good, parsed); err != nil {
		t.Error(err)
	}
	for symbol, value := range (Config{"A": "n", "B": "y", "C": "1", "E": `""`, "F": "y", "M": "y"}) {
		bad := maps.Clone(good)
		bad[symbol] = value
		err := Check(bad, parsed)
		want := "CONFIG_" + symbol + "=" + string(value) + " did not take effect: the kernel has " + string(parsed.Get(symbol))
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
	err = Check(Config{"A": "n", "B": "y"}, parsed)
	if err == nil || strings.Count(err.Error(), "\n") != 1 {
		t.Errorf("two lines are wrong, and the error is %v", err)
	}
	if err := CheckBuiltIn(parsed); err == nil || !strings.Contains(err.Error(), "CONFIG_M is a module") {
		t.Errorf("a module gives the error %v", err)
	}
	delete(parsed, "M")
	if err := CheckBuiltIn(parsed); err != nil {
		t.Error(err)
	}
}

func TestParseConfigRefuses(t *testing.T) {
	for bad, want := range map[string]string{
		"CONFIG_A=y\nCONFIG_A=y":            "line 2 of a configuration sets CONFIG_A again",
		"CONFIG_A=y\n# CONFIG_A is not set": "sets CONFIG_A again",
		"CONFIG_A=y  # Why.":                "is none that Linux writes",
		"CONFIG_A=\"x":                      "is none that Linux writes",
		"export A":                          "is none that Linux writes",
		strings.Repeat("CONFIG_A\n", 1<<18): "larger than",
	} {
		if _, err := ParseConfig(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: the error is %v, want one with %q", bad, err, want)
		}
	}
}

// FuzzParseFragment reads what may be a fragment. What it accepts must be
// accepted by ParseConfig once it is formatted, with the same values.
func FuzzParseFragment(f *testing.F) {
	f.Add(fragment)
	f.Add("CONFIG_A=\"\\\\\"  # A text that ends in a backslash.")
	f.Fuzz(func(t *testing.T, content string) {
		lines, err := ParseFragment("x", content)
		if err != nil {
			return
		}
		merged, err := Merge(lines)
		if err != nil {
			return
		}
		parsed, err := ParseConfig(Format(merged))
		if err != nil {
			t.Fatalf("%q is formatted as what can't be read: %v", content, err)
		}
		for _, line := range merged {
			if got := parsed.Get(line.Symbol); got != line.Value {
				t.Errorf("%s was read as %s", line, got)
			}
		}
	})
}

// FuzzParseConfig reads what may be a configuration.
func FuzzParseConfig(f *testing.F) {
	f.Add(config)
	f.Add("CONFIG_A=y\nCONFIG_A=n")
	f.Fuzz(func(t *testing.T, content string) {
		parsed, err := ParseConfig(content)
		if err != nil {
			return
		}
		for symbol, value := range parsed {
			if value == "" || parsed.Get(symbol) != value {
				t.Errorf("CONFIG_%s is %q", symbol, value)
			}
		}
	})
}
