package code

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/codes-v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []struct {
		Bytes string   `json:"bytes"`
		Code  string   `json:"code"`
		Read  []string `json:"also_read"`
	}
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	if len(vectors) == 0 {
		t.Fatal("no vectors")
	}
	for _, v := range vectors {
		want, err := hex.DecodeString(v.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if got := Format(want); got != v.Code {
			t.Errorf("%s: written %s, want %s", v.Bytes, got, v.Code)
		}
		for _, s := range append(v.Read, v.Code) {
			got, err := Parse(s, len(want))
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%q: read %x, %v", s, got, err)
			}
		}
	}
}

func TestEverySizeReadsBack(t *testing.T) {
	for size := 1; size <= 64; size++ {
		for _, fill := range []byte{0x00, 0x5a, 0xff} {
			want := bytes.Repeat([]byte{fill}, size)
			want[0] ^= 0x81
			got, err := Parse(Format(want), size)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%x: read %x, %v", want, got, err)
			}
			if _, err := Parse(Format(want), size+1); err == nil {
				t.Fatalf("%d bytes were read as one more", size)
			}
			if _, err := Parse(Format(want)+"A", size); err == nil {
				t.Fatalf("%d bytes and a letter were read", size)
			}
		}
	}
	if Format(nil) != "" {
		t.Errorf("no bytes are written %q", Format(nil))
	}
}

func TestParseRefuses(t *testing.T) {
	for _, test := range []struct {
		name, s string
		size    int
		want    string
	}{
		{"nothing", "", 5, "code: it has 0 letters and digits instead of 8"},
		{"only dashes", " -- - ", 5, "code: it has 0 letters and digits instead of 8"},
		{"short", "ABCD-EFG", 5, "code: it has 7 letters and digits instead of 8"},
		{"long", "ABCD-EFGH-J", 5, "code: it has 9 letters and digits instead of 8"},
		{"very long", strings.Repeat("A", 1<<20), 5, "code: it has 1048576 letters and digits instead of 8"},
		{"nine", "ABCD-EFG9", 5, "code: character 8, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"padding", "ABCD-EFG=", 5, "code: character 8, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"wide letter", "ABCD-EFGＨ", 5, "code: character 8, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"Kelvin sign", "\u212aBCD-EFGH", 5, "code: character 1, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"dotless i", "ABCD-EFGı", 5, "code: character 8, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"not UTF-8", "ABCD-EFG\xff", 5, "code: character 8, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"NUL", "ABCD-EFGH\x00", 5, "code: character 9, not counting dashes and spaces, is not one of A-Z and 2-7"},
		{"bits left over", "AB", 1, "code: its last letter is wrong"},
		{"size 0", "", 0, "code: a code of 0 bytes does not exist"},
		{"size -1", "A", -1, "code: a code of -1 bytes does not exist"},
	} {
		got, err := Parse(test.s, test.size)
		if got != nil || err == nil || err.Error() != test.want {
			t.Errorf("%s: %x, %v; want %s", test.name, got, err, test.want)
		}
	}
}

// parseError matches every error of Parse: no part of it can come from the code
// but numbers.
func parseError() *regexp.Regexp {
	return regexp.MustCompile(`^code: (it has \d+ letters and digits instead of \d+|` +
		`character \d+, not counting dashes and spaces, is not one of A-Z and 2-7|` +
		`its last letter is wrong|a code of 0 bytes does not exist)$`)
}

func FuzzParse(f *testing.F) {
	entries, err := os.ReadDir(filepath.Join("testdata", "fuzz", f.Name()))
	if err != nil || len(entries) == 0 {
		f.Fatalf("no seed corpus in testdata/fuzz/%s: %v", f.Name(), err)
	}
	f.Fuzz(func(t *testing.T, s string, size uint8) {
		b, err := Parse(s, int(size))
		if err != nil {
			if b != nil || !parseError().MatchString(err.Error()) {
				t.Fatalf("unexpected result or error: %v", err)
			}
			return
		}
		if len(b) != int(size) {
			t.Fatalf("%d bytes instead of %d", len(b), size)
		}
		again, err := Parse(Format(b), int(size))
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%q doesn't read back: %v", s, err)
		}
	})
}
