package manifest

import (
	"reflect"
	"testing"

	"powercloud.unidatum.com/go/store/chunk"
)

// FuzzParse feeds the parsers that stand behind the authentication, as if
// somebody had the key: they must refuse or understand, never panic, and what
// they understand must be written the same way.
func FuzzParse(f *testing.F) {
	m := &Manifest{Name: "a/b", Size: 10, Chunks: []chunk.Ref{{ID: chunk.ID{1}}}}
	f.Add(m.appendHead(nil))
	f.Add((&Manifest{Name: "x", Deleted: true}).appendHead(nil))
	f.Fuzz(func(t *testing.T, head []byte) {
		m, count, err := parseHead(head)
		if err != nil {
			return
		}
		if count > 1000 {
			return
		}
		m.Chunks = make([]chunk.Ref, count)
		if again := m.appendHead(nil); !reflect.DeepEqual(again, head) {
			t.Errorf("%x was read and written as %x", head, again)
		}
		if m.validate() == nil && m.Size < 0 {
			t.Errorf("a size of %d is valid", m.Size)
		}
	})
}
