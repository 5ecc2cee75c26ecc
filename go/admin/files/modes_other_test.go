//go:build unix && !linux

package files

import (
	"os"
	"testing"
)

// obeyModes skips the test for root, who may read everything.
func obeyModes(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
}
