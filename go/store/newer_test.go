package store_test

import (
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/store/storetest"
)

// TestNewerFormat reads and writes beside manifests that only a newer program can read.
func TestNewerFormat(t *testing.T) {
	const said = "manifest was written by a newer pcctl"
	old, content := storetest.Content(1, 10), storetest.Content(2, 10)
	for title, c := range map[string]struct {
		at      []int
		reads   bool
		doubted bool
		writes  bool
	}{
		"at one of three": {[]int{1}, true, false, true},
		"at a majority":   {[]int{0, 1}, true, true, false},
		"everywhere":      {[]int{0, 1, 2}, false, false, false},
	} {
		t.Run(title, func(t *testing.T) {
			b := storetest.New(t, 3)
			var warned []string
			b.Warn = func(line string) { warned = append(warned, line) }
			storetest.Put(t, b.Open(), "object", old)
			var there [][]byte
			for _, i := range c.at {
				b.Upgrade(b.Blobs(i, blob.KindManifest)...)
				there = append(there, read(t, b.Blobs(i, blob.KindManifest)[0]))
			}
			object, err := b.Open().Stat(t.Context(), "object")
			if c.reads != (err == nil) || err != nil && !strings.Contains(err.Error(), said) {
				t.Errorf("reading gave %+v, %v", object, err)
			}
			if doubted := len(warned) > 0; doubted != c.doubted || doubted && !strings.Contains(warned[0], said) {
				t.Errorf("it warned %q", warned)
			}
			_, err = b.Open().Put(t.Context(), storetest.Source("object", content), nil)
			if c.writes != (err == nil) || err != nil && !strings.Contains(err.Error(), said) {
				t.Errorf("writing gave %v", err)
			}
			if c.writes {
				storetest.WantContent(t, b.Open(), "object", content)
			}
			for n, i := range c.at {
				if string(read(t, b.Blobs(i, blob.KindManifest)[0])) != string(there[n]) {
					t.Errorf("location %d lost it", i)
				}
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
