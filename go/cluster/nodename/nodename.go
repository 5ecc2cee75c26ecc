// Package nodename has the rule for what a node can be called.
package nodename

import (
	"fmt"
	"strings"

	"powercloud.unidatum.com/go/pki"
)

// Max is the longest name in bytes: that of a label in the DNS.
const Max = 63

// Check returns nil when a node can have the name: 1 to 63 lower-case letters, digits
// and dashes, of which neither the first nor the last is a dash. What looks like a
// node ID is no name, so that one can stand for the other.
func Check(name string) error {
	valid := name != "" && len(name) <= Max && !strings.HasPrefix(name, "-") && !strings.HasSuffix(name, "-")
	for _, c := range []byte(name) {
		valid = valid && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-')
	}
	if !valid {
		if len(name) > Max {
			name = name[:Max] + "..."
		}
		return fmt.Errorf("%q can't be a node's name: that has 1 to %d lower-case letters, digits and dashes, and no dash at an end", name, Max)
	}
	if _, err := pki.ParseNodeID(name); err == nil {
		return fmt.Errorf("%q can't be a node's name: it looks like a node ID", name)
	}
	return nil
}
