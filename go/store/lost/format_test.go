package lost

import (
	"bytes"
	"encoding/hex"
	"maps"
	"os"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/keys/keystest"
)

func example() Blobs { return Blobs{{1}: true, {2, 3}: true} }

func newKeeper(t *testing.T) *Keeper {
	t.Helper()
	k, err := NewKeeper(nil, keystest.First(t).Root(t))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t *testing.T, k *Keeper) []byte {
	t.Helper()
	sealed, err := k.sealer.Seal(appendIDs(nil, example()), bytes.NewReader(make([]byte, 24)))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// TestVector holds the format still: the golden file was written by the first
// version of this package.
func TestVector(t *testing.T) {
	golden, err := os.ReadFile("testdata/lost-v1.hex")
	if err != nil {
		t.Fatal(err)
	}
	want, err := hex.DecodeString(strings.TrimSpace(string(golden)))
	if err != nil {
		t.Fatal(err)
	}
	k := newKeeper(t)
	if sealed := seal(t, k); !bytes.Equal(sealed, want) {
		t.Errorf("record %x, want %x", sealed, want)
	}
	if opened, err := k.open(want); err != nil || !maps.Equal(opened, example()) {
		t.Errorf("the old record reads as %v, %v", opened, err)
	}
}

func TestEveryAlteredByteIsCorrupt(t *testing.T) {
	k := newKeeper(t)
	sealed := seal(t, k)
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

func TestStrictContent(t *testing.T) {
	good := appendIDs(nil, example())
	one, two := good[countSize:countSize+32], good[countSize+32:]
	for title, content := range map[string][]byte{
		"nothing":         nil,
		"no entries":      good[:countSize],
		"a byte less":     good[:len(good)-1],
		"a byte more":     append(bytes.Clone(good), 0),
		"unsorted":        bytes.Join([][]byte{good[:countSize], two, one}, nil),
		"repeated":        bytes.Join([][]byte{good[:countSize], one, one}, nil),
		"count too large": append([]byte{0xff, 0xff, 0xff, 0xff}, good[countSize:]...),
	} {
		if _, err := parse(content); err == nil {
			t.Errorf("%s: it was accepted", title)
		}
	}
	if _, err := parse(good); err != nil {
		t.Error(err)
	}
}

// FuzzParse feeds the parser that stands behind the authentication: it must
// refuse or understand, and write what it understands the same way.
func FuzzParse(f *testing.F) {
	f.Add(appendIDs(nil, example()))
	f.Add(appendIDs(nil, nil))
	f.Fuzz(func(t *testing.T, content []byte) {
		blobs, err := parse(content)
		if err != nil {
			return
		}
		if again := appendIDs(nil, blobs); !bytes.Equal(again, content) {
			t.Errorf("%x was read and written as %x", content, again)
		}
	})
}
