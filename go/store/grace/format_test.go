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
	good := appendEntries(nil, example().Chunks)
	empty := appendEntries(nil, nil)
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

// FuzzParse feeds the parser that stands behind the authentication: it must
// refuse or understand, and write what it understands the same way.
func FuzzParse(f *testing.F) {
	f.Add(appendEntries(appendEntries(nil, example().Chunks), example().Leftovers))
	f.Add(appendEntries(appendEntries(nil, nil), nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		record, err := parse(content)
		if err != nil {
			return
		}
		again := appendEntries(appendEntries(nil, record.Chunks), record.Leftovers)
		if !bytes.Equal(again, content) {
			t.Errorf("%x was read and written as %x", content, again)
		}
	})
}
