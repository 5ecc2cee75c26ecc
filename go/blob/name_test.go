package blob_test

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/go/blob"
)

func TestNameText(t *testing.T) {
	id := [blob.IDSize]byte{0: 0x01, 1: 0xab, 31: 0xff}
	digits := "01ab" + strings.Repeat("0", 58) + "ff"
	for _, test := range []struct {
		name blob.Name
		want string
	}{
		{blob.Header(), "header"},
		{blob.Name{Kind: blob.KindManifest, ID: id}, "manifest/" + digits},
		{blob.Name{Kind: blob.KindChunk, ID: id}, "chunk/" + digits},
		{blob.Name{Kind: blob.KindRecord}, "record/" + strings.Repeat("0", 64)},
	} {
		if got := test.name.String(); got != test.want {
			t.Errorf("name is %q, want %q", got, test.want)
		}
		if got, err := blob.ParseName(test.want); err != nil || got != test.name {
			t.Errorf("ParseName(%q) = %v, %v", test.want, got, err)
		}
		if err := test.name.Check(); err != nil {
			t.Errorf("Check(%v): %v", test.name, err)
		}
	}
}

func TestParseNameRefuses(t *testing.T) {
	digits := strings.Repeat("0", 64)
	for _, text := range []string{
		"", "header/", "header/" + digits, "Header", "chunk", "chunk/", "chunk/" + digits[1:], "chunk/0" + digits,
		"chunk/" + strings.Repeat("A", 64), "chunk/" + strings.Repeat("g", 64), "other/" + digits, "chunk\\" + digits,
		" chunk/" + digits, "chunk/" + digits + "\n", "chunk/../" + digits[3:], "kind(0)/" + digits,
	} {
		if name, err := blob.ParseName(text); err == nil {
			t.Errorf("ParseName(%q) = %v, want an error", text, name)
		}
	}
}

func TestNameCheckRefuses(t *testing.T) {
	for _, name := range []blob.Name{{}, {Kind: 5}, {Kind: blob.KindHeader, ID: [blob.IDSize]byte{1}}} {
		if name.Check() == nil {
			t.Errorf("Check(%#v) accepts it", name)
		}
	}
}

func FuzzParseName(f *testing.F) {
	requireCorpus(f, "FuzzParseName")
	f.Fuzz(func(t *testing.T, text string) {
		name, err := blob.ParseName(text)
		if err != nil {
			return
		}
		if name.String() != text || name.Check() != nil {
			t.Fatalf("ParseName(%q) = %v", text, name)
		}
	})
}
