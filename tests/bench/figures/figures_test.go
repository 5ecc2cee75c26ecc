package figures

import (
	"bytes"
	"strings"
	"testing"
)

func TestMedian(t *testing.T) {
	list := []int64{9, 1, 5}
	if got := Median(list); got != 5 || list[0] != 9 {
		t.Errorf("the median of %v is %d", list, got)
	}
	if got := Median([]uint64{4, 1, 8, 2}); got != 3 {
		t.Errorf("%d", got)
	}
}

func TestInTurn(t *testing.T) {
	list := []string{"a", "b", "c"}
	for round, want := range []string{"a b c", "c b a", "a b c"} {
		if got := strings.Join(InTurn(list, round), " "); got != want {
			t.Errorf("round %d is of %s", round, got)
		}
	}
	if list[0] != "a" {
		t.Error("the list itself was reversed")
	}
}

func TestLoad(t *testing.T) {
	if got, err := parseLoad("0.52 1.00 12.05 2/345 6789\n"); got != "0.52 1.00 12.05" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := parseLoad("0.52 1.00"); err == nil {
		t.Errorf("%q", got)
	}
}

func TestTables(t *testing.T) {
	var out bytes.Buffer
	if err := WriteTargets(&out, []Target{{"size", "< 2", "1", true}, {"time", "< 2 s", "3 s", false}}); err != nil {
		t.Fatal(err)
	}
	if err := WriteNotes(&out, [][2]string{{"size", "of all"}, {"a word", "its meaning"}}); err != nil {
		t.Fatal(err)
	}
	want := "target  wanted  measured  \n" +
		"size    < 2     1         met\n" +
		"time    < 2 s   3 s       MISSED\n\n" +
		"size    of all\n" +
		"a word  its meaning\n"
	if out.String() != want {
		t.Errorf("it wrote\n%s\nwant\n%s", out.String(), want)
	}
}
