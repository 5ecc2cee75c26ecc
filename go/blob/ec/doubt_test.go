package ec

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestDoubt: whoever reads a manifest while so many parts can't be read that a newer
// version may be at them alone is told so, and nobody else.
func TestDoubt(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for down := 0; down <= l.total-l.data; down++ {
			b := newBed(t, l)
			for _, name := range allNames {
				b.put(name, content)
			}
			b.flush()
			for _, part := range b.at[:down] {
				part.Fail(blobtest.All, nil)
			}
			b.expect(chunkName, content)
			if doubt := b.Doubt(); doubt != "" {
				t.Errorf("%d parts down, of a chunk it says: %s", down, doubt)
			}
			b.expect(manifestName, content)
			doubt := b.Doubt()
			if want := down >= l.quorum(); want != (doubt != "") || want && !strings.Contains(doubt, "./a: ") {
				t.Errorf("%d parts down, it says: %q", down, doubt)
			}
		}
	})
}
