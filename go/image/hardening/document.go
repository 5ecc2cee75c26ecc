package hardening

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"powercloud.unidatum.com/go/image/kconfig"
)

// MaxDocumentSize is the largest document that is read, in bytes.
const MaxDocumentSize = 1 << 20

// A row of the document's table, such as
//
//	| `CONFIG_PANIC_TIMEOUT` | `-1` | `10` | amd64, arm64 | Leaves time to read it. |
//	| `nosmt` (command line) | `present` | `absent` | amd64 | Would halve the threads. |
//	| `kernel.warn_limit` (sysctl) | `1` | `100` | amd64, arm64 | A warning is no attack. |
var row = regexp.MustCompile("^\\| `([A-Za-z0-9_.]+)`(?: \\((command line|sysctl)\\))? \\| `([^` ]+)` \\| `([^` ]+)` \\| (amd64|arm64|amd64, arm64) \\| (.*[^ ]) \\|$")

// setting returns what a row's first cell names. A symbol has its prefix and no kind;
// everything else has a kind.
func setting(name, kind string) (Setting, bool) {
	bare, isSymbol := strings.CutPrefix(name, "CONFIG_")
	switch {
	case kind == "" && isSymbol && bare != "":
		return Setting{Symbol, bare}, true
	case kind != "":
		return Setting{Kind(kind), name}, true
	}
	return Setting{}, false
}

// minReason is how long a reason is at least, in bytes.
const minReason = 20

// ParseDocument reads the departures that a document in Markdown explains: the
// rows of its table that name a setting. It refuses a row without a reason, one that
// isn't of the form shown above, and two for the same setting and architecture.
func ParseDocument(content string) ([]Departure, error) {
	if len(content) > MaxDocumentSize {
		return nil, fmt.Errorf("the document is larger than %d bytes", MaxDocumentSize)
	}
	var explained []Departure
	type place struct {
		Setting
		architecture string
	}
	seen := map[place]bool{}
	for i, line := range strings.Split(content, "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		fields := row.FindStringSubmatch(line)
		var of Setting
		good := false
		if fields != nil && len(fields[6]) >= minReason {
			of, good = setting(fields[1], fields[2])
		}
		if !good {
			return nil, fmt.Errorf("line %d isn't a row of setting, recommended value, value, architectures and reason: %q", i+1, line)
		}
		for _, architecture := range strings.Split(fields[5], ", ") {
			if seen[place{of, architecture}] {
				return nil, fmt.Errorf("line %d explains %s again", i+1, of)
			}
			seen[place{of, architecture}] = true
			explained = append(explained, Departure{
				Setting: of, Recommended: kconfig.Value(fields[3]), Here: kconfig.Value(fields[4]), Architecture: architecture,
			})
		}
	}
	return explained, nil
}

// Compare returns an error that names each departure that isn't explained, and
// each that is explained and isn't there.
func Compare(found, explained []Departure) error {
	var problems []error
	for _, departure := range found {
		if !slices.Contains(explained, departure) {
			problems = append(problems, fmt.Errorf("%s, and no row explains that", departure))
		}
	}
	for _, departure := range explained {
		if !slices.Contains(found, departure) {
			problems = append(problems, fmt.Errorf("a row explains %s, which isn't so", departure))
		}
	}
	return errors.Join(problems...)
}
