//go:build unix

package catalog

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/keys/keystest"
)

// TestNothingWaitsForAPipe has pipes where the catalog's files belong. A catalog
// that opened one would wait for ever.
func TestNothingWaitsForAPipe(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	for _, path := range []string{c.path(7), c.path(7) + ".tmp"} {
		if err := unix.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	save(t, c)
	wantVersion(t, c.Load(7), home, "mark-1", 10)
}

// TestLinkIsNotWrittenThrough has a link where the temporary file belongs.
func TestLinkIsNotWrittenThrough(t *testing.T) {
	c := newCatalog(t, t.TempDir(), keystest.First(t))
	precious := filepath.Join(t.TempDir(), "precious")
	if err := os.WriteFile(precious, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(precious, c.path(7)+".tmp"); err != nil {
		t.Fatal(err)
	}
	save(t, c)
	if content, err := os.ReadFile(precious); err != nil || string(content) != "precious" {
		t.Errorf("the file that a link led to has %q, %v", content, err)
	}
	wantVersion(t, c.Load(7), home, "mark-1", 10)
}
