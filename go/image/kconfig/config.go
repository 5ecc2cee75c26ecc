package kconfig

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Config is a complete configuration: each symbol that is set.
type Config map[string]Value

// Get returns a symbol's value.
func (c Config) Get(symbol string) Value {
	if value, ok := c[symbol]; ok {
		return value
	}
	return No
}

var (
	configLine = regexp.MustCompile(`^CONFIG_([A-Za-z0-9_]+)=(y|m|-?[0-9]+|0x[0-9a-fA-F]+|"(?:[^"\\]|\\.)*")$`)
	notSetLine = regexp.MustCompile(`^# CONFIG_([A-Za-z0-9_]+) is not set$`)
)

// ParseConfig reads a configuration as Linux writes it to .config.
func ParseConfig(content string) (Config, error) {
	if len(content) > MaxSize {
		return nil, fmt.Errorf("a configuration is larger than %d bytes", MaxSize)
	}
	config := Config{}
	for i, text := range strings.Split(content, "\n") {
		symbol, value := "", No
		if fields := configLine.FindStringSubmatch(text); fields != nil {
			symbol, value = fields[1], Value(fields[2])
		} else if fields := notSetLine.FindStringSubmatch(text); fields != nil {
			symbol = fields[1]
		} else if text == "" || strings.HasPrefix(text, "#") {
			continue
		} else {
			return nil, fmt.Errorf("line %d of a configuration, %q, is none that Linux writes", i+1, text)
		}
		if _, ok := config[symbol]; ok {
			return nil, fmt.Errorf("line %d of a configuration sets CONFIG_%s again", i+1, symbol)
		}
		config[symbol] = value
	}
	return config, nil
}

// Check returns an error that names each setting of wanted that did not take
// effect, for instance because Linux knows no such symbol, because what it depends
// on isn't set, or because something else selects it.
func Check(wanted, config Config) error {
	var missing []error
	for _, symbol := range slices.Sorted(maps.Keys(wanted)) {
		if want, got := wanted[symbol], config.Get(symbol); got != want {
			missing = append(missing, fmt.Errorf("CONFIG_%s=%s did not take effect: the kernel has %s", symbol, want, got))
		}
	}
	return errors.Join(missing...)
}

// CheckBuiltIn returns an error that names each symbol that is a module.
func CheckBuiltIn(config Config) error {
	var modules []error
	for symbol, value := range config {
		if value == "m" {
			modules = append(modules, fmt.Errorf("CONFIG_%s is a module; everything must be built in", symbol))
		}
	}
	return errors.Join(modules...)
}
