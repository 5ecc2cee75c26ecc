package output

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestText(t *testing.T) {
	for most, want := range map[int]string{0: "abcdef", 1: "ab", 2: "ab", 3: "abcd"} {
		text := &Text{Most: most}
		for _, s := range []string{"ab", "cd", "ef"} {
			if n, err := text.Write([]byte(s)); n != len(s) || err != nil {
				t.Errorf("writing %q returned %d, %v", s, n, err)
			}
		}
		if got := text.String(); got != want {
			t.Errorf("with at most %d bytes it has %q, want %q", most, got, want)
		}
	}
}

func TestWritersDontMix(t *testing.T) {
	var text Text
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			for range 100 {
				fmt.Fprintln(&text, "one line")
				_ = text.String()
			}
		})
	}
	writers.Wait()
	if got := text.String(); got != strings.Repeat("one line\n", 400) {
		t.Errorf("it has %q", got)
	}
}
