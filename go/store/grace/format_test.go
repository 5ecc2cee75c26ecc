package grace

import (
	"bytes"
	"encoding/hex"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/keys/keystest"
)

// example returns a record with an entry of each kind.
func example() *Record {
	return &Record{
		Chunks: map[Key]Entry{
			{1}: {Since: time.Unix(0, 1_700_000_000_000_000_001)},
			{2}: {Since: time.Unix(0, 1_700_000_000_000_000_002), Condemned: true},
		},
		Leftovers: map[Key]Entry{{3}: {Since: time.Unix(0, 1)}},
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

// TestVector holds the format still: the golden file was written by the first
// version of this package.
func TestVector(t *testing.T) {
	golden, err := os.ReadFile("testdata/grace-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.TrimSpace(string(golden)))
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(t)
	sealed, err := k.seal(example(), bytes.NewReader(make([]byte, 24)))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(sealed, want) {
		t.Errorf("record %x, want %x", sealed, want)
	}
	opened, err := k.open(want)
	if err != nil || !reflect.DeepEqual(opened, example()) {
		t.Errorf("the old record reads as %+v, %v", opened, err)
	}
}

func TestEveryAlteredByteIsCorrupt(t *testing.T) {
	k := newKeeper(t)
	sealed, err := k.seal(example(), bytes.NewReader(make([]byte, 24)))
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		altered := bytes.Clone(sealed)
		altered[i] ^= 1
		if _, err := k.open(altered); err == nil {
			t.Errorf("byte %d altered: it opened", i)
		}
		if _, err := k.open(sealed[:i]); err == nil {
			t.Errorf("cut to %d bytes: it opened", i)
		}
	}
}

func TestStrictEntries(t *testing.T) {
	good := appendEntries(nil, example().Chunks, MaxEntries)
	empty := appendEntries(nil, nil, MaxEntries)
	swapped := bytes.Join([][]byte{good[:4], good[4+entrySize:], good[4 : 4+entrySize]}, nil)
	repeated := bytes.Join([][]byte{good[:4], good[4 : 4+entrySize], good[4 : 4+entrySize]}, nil)
	flagged := bytes.Clone(good)
	flagged[4+entrySize-1] = 2
	for title, content := range map[string][]byte{
		"nothing":         nil,
		"one list":        good,
		"trailing bytes":  append(append(bytes.Clone(good), empty...), 0),
		"unsorted":        append(swapped, empty...),
		"repeated":        append(repeated, empty...),
		"unknown flag":    append(flagged, empty...),
		"count too large": append([]byte{0xff, 0xff, 0xff, 0xff}, empty...),
	} {
		if _, err := parse(content); err == nil {
			t.Errorf("%s: it was accepted", title)
		}
	}
	if _, err := parse(append(good, empty...)); err != nil {
		t.Error(err)
	}
}

func TestFullListKeepsTheCondemnedThenTheOldest(t *testing.T) {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	entries := map[Key]Entry{
		{1}: {Since: at(3)},
		{2}: {Since: at(9), Condemned: true},
		{3}: {Since: at(1)},
		{4}: {Since: at(2)},
		{5}: {Since: at(8), Condemned: true},
		{6}: {Since: at(1)},
	}
	for most, want := range [][]Key{{}, {{5}}, {{2}, {5}}, {{2}, {3}, {5}}, {{2}, {3}, {5}, {6}}, {{2}, {3}, {4}, {5}, {6}}} {
		read, rest, err := parseEntries(appendEntries(nil, entries, most))
		if err != nil || len(rest) != 0 || len(read) != most {
			t.Fatalf("%d of %d entries were read as %d, %v", most, len(entries), len(read), err)
		}
		for _, key := range want {
			if entry, ok := read[key]; !ok || !entry.Since.Equal(entries[key].Since) {
				t.Errorf("of %d entries that fit, %x isn't one", most, key[0])
			}
		}
	}
}

// FuzzParse feeds the parser that stands behind the authentication: it must
// refuse or understand, and write what it understands the same way.
func FuzzParse(f *testing.F) {
	f.Add(appendEntries(appendEntries(nil, example().Chunks, MaxEntries), example().Leftovers, MaxEntries))
	f.Add(appendEntries(appendEntries(nil, nil, MaxEntries), nil, MaxEntries))
	f.Fuzz(func(t *testing.T, content []byte) {
		record, err := parse(content)
		if err != nil {
			return
		}
		again := appendEntries(appendEntries(nil, record.Chunks, MaxEntries), record.Leftovers, MaxEntries)
		if !bytes.Equal(again, content) {
			t.Errorf("%x was read and written as %x", content, again)
		}
	})
}
