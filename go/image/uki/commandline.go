package uki

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ParseCommandLine reads a kernel command line from a file with one word a line.
// Empty lines, and lines that begin with #, are comments; at least one comes
// right before each word, or run of words, and says what it is for.
func ParseCommandLine(content []byte) (string, error) {
	var words []string
	seen := map[string]bool{}
	explained := false
	for number, line := range strings.Split(string(content), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			explained = false
			continue
		case strings.HasPrefix(line, "#"):
			explained = true
			continue
		case len(strings.Fields(line)) > 1 || strings.ContainsFunc(line, func(c rune) bool { return c <= ' ' || c > '~' }):
			return "", fmt.Errorf("kernel command line: line %d must be one word: %q", number+1, line)
		case !explained:
			return "", fmt.Errorf("kernel command line: line %d: no comment says what %s is for", number+1, line)
		case seen[line]:
			return "", fmt.Errorf("kernel command line: line %d: %s is there twice", number+1, line)
		}
		seen[line] = true
		words = append(words, line)
	}
	joined := strings.Join(words, " ")
	if joined == "" || len(joined) > maxCommandLine {
		return "", fmt.Errorf("kernel command line: it has %d bytes, instead of 1 to %d", len(joined), maxCommandLine)
	}
	return joined, nil
}

// ReadCommandLine reads a kernel command line from files, each as ParseCommandLine
// describes it, one after another.
func ReadCommandLine(names ...string) (string, error) {
	var joined []byte
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("kernel command line: %w", err)
		}
		joined = append(append(joined, content...), '\n')
	}
	return ParseCommandLine(joined)
}

// checkLine returns an error unless the text is one line of printable ASCII of at
// most limit bytes, which is what the stub can pass on.
func checkLine(text string, limit int) error {
	if text == "" || len(text) > limit {
		return fmt.Errorf("it has %d bytes, instead of 1 to %d", len(text), limit)
	}
	if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c > '~' }) {
		return errors.New("it has other characters than printable ASCII")
	}
	return nil
}
