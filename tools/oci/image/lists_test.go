package image

import (
	"slices"
	"strings"
	"testing"
)

func TestLists(t *testing.T) {
	for content, want := range map[string][]string{
		"": nil, "\n": nil, "a": {"a"}, "a\n": {"a"}, "a b\nc,d\n": {"a b", "c,d"},
	} {
		if got, err := Lines([]byte(content)); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q is %q, %v, want %q", content, got, err, want)
		}
	}
	if got, err := CommaList([]byte("a,b\nc\n")); err != nil || !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := Pairs([]byte("a=b=c\nd=\n")); err != nil || !slices.Equal(got, []Pair{{"a", "b=c"}, {"d", ""}}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, content := range []string{"a\n\nb", "\na", "a\n\n", "a\x00", "a\tb", "a\r\n", "\xff", strings.Repeat("a", MaxList+1)} {
		if got, err := Lines([]byte(content)); err == nil {
			t.Errorf("%.20q was taken for %.20q", content, got)
		}
	}
	for _, content := range []string{"a", "=b", "a=1\na=2"} {
		if got, err := Pairs([]byte(content)); err == nil {
			t.Errorf("%q was taken for %q", content, got)
		}
	}
}

// FuzzPairs checks that what is parsed can be written and parsed again.
func FuzzPairs(f *testing.F) {
	f.Add([]byte("a=b\nc=d=e\n"))
	f.Add([]byte("a=\n\n=\x00"))
	f.Add([]byte("PATH=/bin:$PATH,x"))
	f.Fuzz(func(t *testing.T, content []byte) {
		if items, err := CommaList(content); err == nil {
			if again, err := CommaList([]byte(strings.Join(items, ","))); err != nil || !slices.Equal(again, items) {
				t.Errorf("%q became %q, %v", items, again, err)
			}
		}
		pairs, err := Pairs(content)
		if err != nil {
			return
		}
		var lines []string
		for _, pair := range pairs {
			lines = append(lines, pair.Key+"="+pair.Value)
		}
		if again, err := Pairs([]byte(strings.Join(lines, "\n"))); err != nil || !slices.Equal(again, pairs) {
			t.Errorf("%q became %q, %v", pairs, again, err)
		}
	})
}
