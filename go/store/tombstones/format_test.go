package tombstones

import (
	"bytes"
	"encoding/hex"
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys/keystest"
	"powercloud.unidatum.com/go/store/manifest"
	"powercloud.unidatum.com/go/store/record"
)

func example() Entries {
	return Entries{
		{1}:    {Version: manifest.Version{Time: 1_700_000_000_000_000_001, Tie: [16]byte{7}}, Since: time.Unix(0, 1_700_000_000_000_000_002)},
		{2, 3}: {Version: manifest.Version{Time: 1, Tie: [16]byte{8}}, Since: time.Unix(0, -1)},
	}
}

func newKeeper(t *testing.T) *Keeper {
	t.Helper()
	k, err := NewKeeper(nil, keystest.First(t).Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// records are the two sorts by their golden files.
func records(t *testing.T) map[string]*record.Sealer {
	t.Helper()
	k := newKeeper(t)
	return map[string]*record.Sealer{"testdata/tombstones-v1.hex": k.seen, "testdata/removals-v1.hex": k.removals}
}

func seal(t *testing.T, sealer *record.Sealer) []byte {
	t.Helper()
	sealed, err := sealer.Seal(appendEntries(nil, example(), MaxRemovals), bytes.NewReader(make([]byte, 24)))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// TestVectors holds the formats still: the golden files were written by the first
// version of this package.
func TestVectors(t *testing.T) {
	for path, sealer := range records(t) {
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(strings.TrimSpace(string(golden)))
		if err != nil {
			t.Fatal(err)
		}
		if sealed := seal(t, sealer); !bytes.Equal(sealed, want) {
			t.Errorf("%s: record %x", path, sealed)
		}
		content, err := sealer.Open(want)
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := parse(content, MaxRemovals); err != nil || !maps.Equal(opened, example()) {
			t.Errorf("%s: the old record reads as %v, %v", path, opened, err)
		}
	}
}

func TestEveryAlteredByteIsCorrupt(t *testing.T) {
	for path, sealer := range records(t) {
		sealed := seal(t, sealer)
		for i := range sealed {
			altered := bytes.Clone(sealed)
			altered[i] ^= 1
			if _, err := sealer.Open(altered); err == nil {
				t.Errorf("%s: byte %d altered: it opened", path, i)
			}
			if _, err := sealer.Open(sealed[:i]); err == nil {
				t.Errorf("%s: cut to %d bytes: it opened", path, i)
			}
		}
		for other, sealer := range records(t) {
			if _, err := sealer.Open(sealed); (err == nil) != (other == path) {
				t.Errorf("%s as %s: %v", path, other, err)
			}
		}
	}
}

func TestStrictContent(t *testing.T) {
	good := appendEntries(nil, example(), MaxSeen)
	one, two := good[countSize:countSize+entrySize], good[countSize+entrySize:]
	for title, content := range map[string][]byte{
		"nothing":         nil,
		"no entries":      good[:countSize],
		"a byte less":     good[:len(good)-1],
		"a byte more":     append(bytes.Clone(good), 0),
		"unsorted":        bytes.Join([][]byte{good[:countSize], two, one}, nil),
		"repeated":        bytes.Join([][]byte{good[:countSize], one, one}, nil),
		"count too large": append([]byte{0xff, 0xff, 0xff, 0xff}, good[countSize:]...),
	} {
		if _, err := parse(content, MaxSeen); err == nil {
			t.Errorf("%s: it was accepted", title)
		}
	}
	if _, err := parse(good, 1); err == nil {
		t.Error("more entries than fit were accepted")
	}
	if _, err := parse(good, 2); err != nil {
		t.Error(err)
	}
}

func TestFullRecordKeepsTheOldest(t *testing.T) {
	entries := example()
	entries[Key{9}] = Entry{Since: time.Unix(0, -2)}
	read, err := parse(appendEntries(nil, entries, 2), 2)
	if _, oldest := read[Key{9}]; err != nil || len(read) != 2 || !oldest {
		t.Errorf("kept are %v, %v", read, err)
	}
}

// FuzzParse feeds the parser that stands behind the authentication: it must refuse
// or understand, and write what it understands the same way.
func FuzzParse(f *testing.F) {
	f.Add(appendEntries(nil, example(), MaxSeen))
	f.Add(appendEntries(nil, nil, MaxSeen))
	f.Fuzz(func(t *testing.T, content []byte) {
		entries, err := parse(content, MaxSeen)
		if err != nil {
			return
		}
		if again := appendEntries(nil, entries, MaxSeen); !bytes.Equal(again, content) {
			t.Errorf("%x was read and written as %x", content, again)
		}
	})
}
