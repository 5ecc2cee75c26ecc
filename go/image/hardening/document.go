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
var row = regexp.MustCompile("^\\| `CONFIG_([A-Za-z0-9_]+)` \\| `([^` ]+)` \\| `([^` ]+)` \\| (amd64|arm64|amd64, arm64) \\| (.*[^ ]) \\|$")

// minReason is how long a reason is at least, in bytes.
const minReason = 20

// ParseDocument reads the departures that a document in Markdown explains: the
// rows of its table that name a symbol. It refuses a row without a reason, one that
// isn't of the form shown above, and two for the same symbol and architecture.
func ParseDocument(content string) ([]Departure, error) {
	if len(content) > MaxDocumentSize {
		return nil, fmt.Errorf("the document is larger than %d bytes", MaxDocumentSize)
	}
	var explained []Departure
	seen := map[string]bool{}
	for i, line := range strings.Split(content, "\n") {
		if !strings.HasPrefix(line, "| `CONFIG_") {
			continue
		}
		fields := row.FindStringSubmatch(line)
		if fields == nil || len(fields[5]) < minReason {
			return nil, fmt.Errorf("line %d isn't a row of setting, recommended value, value, architectures and reason: %q", i+1, line)
		}
		for _, architecture := range strings.Split(fields[4], ", ") {
			if seen[fields[1]+" "+architecture] {
				return nil, fmt.Errorf("line %d explains CONFIG_%s again", i+1, fields[1])
			}
			seen[fields[1]+" "+architecture] = true
			explained = append(explained, Departure{
				Symbol: fields[1], Recommended: kconfig.Value(fields[2]), Here: kconfig.Value(fields[3]), Architecture: architecture,
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
