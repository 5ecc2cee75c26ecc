package image

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// MaxList is the largest file, in bytes, that a list is read from.
const MaxList = 1 << 20

// A Pair is a variable of the environment, a label or an annotation.
type Pair struct {
	Key, Value string
}

// Lines parses a list that has one item a line. The last line may lack its
// line end. An item is not empty, and has no control characters.
func Lines(content []byte) ([]string, error) {
	switch {
	case len(content) > MaxList:
		return nil, fmt.Errorf("it has more than %d bytes", MaxList)
	case !utf8.Valid(content):
		return nil, errors.New("it isn't UTF-8")
	}
	text := strings.TrimSuffix(string(content), "\n")
	if text == "" {
		return nil, nil
	}
	items := strings.Split(text, "\n")
	for _, item := range items {
		if item == "" {
			return nil, errors.New("it has an empty item")
		}
		if strings.ContainsFunc(item, isControl) {
			return nil, fmt.Errorf("the item %q has a control character", item)
		}
	}
	return items, nil
}

// CommaList parses a list whose items are separated by commas or line ends.
func CommaList(content []byte) ([]string, error) {
	return Lines(bytes.ReplaceAll(content, []byte(","), []byte("\n")))
}

// Pairs parses a list that has "key=value" in each line. A value may be empty.
// No key may occur twice.
func Pairs(content []byte) ([]Pair, error) {
	lines, err := Lines(content)
	if err != nil {
		return nil, err
	}
	var pairs []Pair
	seen := map[string]bool{}
	for _, line := range lines {
		key, value, ok := strings.Cut(line, "=")
		switch {
		case !ok || key == "":
			return nil, fmt.Errorf("%q isn't of the form key=value", line)
		case seen[key]:
			return nil, fmt.Errorf("it has %s twice", key)
		}
		seen[key] = true
		pairs = append(pairs, Pair{key, value})
	}
	return pairs, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// reference matches the use of a variable in the value of another one.
var reference = regexp.MustCompile(`\$(\{[a-zA-Z0-9_]+\}|[a-zA-Z0-9_]+)`)

// expand replaces $KEY and ${KEY} in the value with what environment, a list of
// "key=value", has for it.
func expand(value string, environment []string) (string, error) {
	var missing error
	expanded := reference.ReplaceAllStringFunc(value, func(use string) string {
		key := strings.Trim(use, "${}")
		for _, variable := range environment {
			if name, value, _ := strings.Cut(variable, "="); name == key {
				return value
			}
		}
		missing = errors.Join(missing, fmt.Errorf("it uses %s, which neither the base nor a line before it has", use))
		return ""
	})
	return expanded, missing
}

// set returns the environment with the variable replaced, or added at its end.
func set(environment []string, key, value string) []string {
	for i, variable := range environment {
		if name, _, _ := strings.Cut(variable, "="); name == key {
			environment[i] = key + "=" + value
			return environment
		}
	}
	return append(environment, key+"="+value)
}

// port matches a port from 1 to 65535, and maybe its protocol.
var port = regexp.MustCompile(`^([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])(/(tcp|udp|sctp))?$`)
