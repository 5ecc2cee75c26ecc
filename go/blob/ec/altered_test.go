package ec

import (
	"bytes"
	"testing"

	"powercloud.unidatum.com/go/blob"
	"powercloud.unidatum.com/go/blob/blobtest"
)

// TestWhatIsBehindWasAltered: an older version that was altered, or cut short, says
// nothing against the newer one in front of it, and repair drops it.
func TestWhatIsBehindWasAltered(t *testing.T) {
	forLayouts(t, func(t *testing.T, l layout) {
		for what, alter := range map[string]func(data []byte, behind int) []byte{
			"payload": func(data []byte, behind int) []byte {
				data[behind+l.headerSize()] ^= 1
				return data
			},
			"header":    func(data []byte, behind int) []byte { data[behind] ^= 1; return data },
			"cut short": func(data []byte, _ int) []byte { return data[:len(data)-1] },
			"too long":  func(data []byte, _ int) []byte { return append(data, 0) },
		} {
			b := newBed(t, l)
			b.put(manifestName, bytes.Repeat([]byte("first"), 100))
			b.flush()
			b.put(manifestName, content) // It isn't flushed: the first stays behind.
			for part := range l.quorum() {
				held := b.snapshot(part)[manifestName]
				records, err := parseRecords(held, manifestName, l)
				if err != nil || len(records) != 2 {
					t.Fatalf("part %d holds %d versions, %v", part, len(records), err)
				}
				b.plant(part, manifestName, alter(bytes.Clone(held), len(records[0].raw)))
			}
			b.reopen()
			// As many parts as it takes, and none of them unaltered.
			for part := l.data; part < l.total; part++ {
				b.at[part].Fail(blobtest.All, nil)
			}
			if l.data > 1 {
				if got, err := b.Get(blob.ReadOnly(t.Context()), manifestName, nil, limit); err != nil || !bytes.Equal(got, content) {
					t.Errorf("%s: Get = %.20q, %v", what, got, err)
				}
			}
			b.heal()
			health, err := b.Heal(t.Context(), blob.HealOptions{})
			if err != nil || health.Parts[0].Corrupt == 0 || health.Parts[0].Repaired != health.Parts[0].Corrupt {
				t.Errorf("%s: Heal finds %+v, %v", what, health.Parts[0], err)
			}
			b.expect(manifestName, content)
			b.whole(manifestName)
		}
	})
}
