package boot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/sys/pstore"
)

// heard returns what is kept of a program that wrote a text.
func heard(text string) *tail {
	said := new(tail)
	readLines(strings.NewReader(text), said.add)
	return said
}

// counted are a number of lines, each with its own.
func counted(format string, number int) string {
	var all strings.Builder
	for i := range number {
		fmt.Fprintf(&all, format+"\n", i)
	}
	return all.String()
}

func TestTail(t *testing.T) {
	short, stacks := counted("stack %d", crashLines-1), counted("stack %d", 5000)
	for name, c := range map[string]struct{ text, want string }{
		"nothing":      {"", ""},
		"a few lines":  {"a\nb\n", "a\nb\n"},
		"many lines":   {counted("line %d", 5000), between(counted("line %d", 5000), 5000-tailLines, 5000)},
		"a short one":  {"before\npanic: a mistake\n" + short, "before\npanic: a mistake\n" + short},
		"just too big": {"panic: a mistake\n" + between(stacks, 0, tailLines), "panic: a mistake\n" + between(stacks, 0, tailLines)},
		"one is gone": {"panic: a mistake\n" + between(stacks, 0, tailLines+crashLines), "panic: a mistake\n" + between(stacks, 0, crashLines-1) +
			"(1 lines are left out here)\n" + between(stacks, crashLines, tailLines+crashLines)},
		"a crash": {"before\npanic: a mistake\n" + stacks, "panic: a mistake\n" + between(stacks, 0, crashLines-1) +
			fmt.Sprintf("(%d lines are left out here)\n", 5000-tailLines-crashLines+1) + between(stacks, 5000-tailLines, 5000)},
		"two crashes": {"panic: first\n" + stacks + "fatal error: second\n" + stacks, "fatal error: second\n" + between(stacks, 0, crashLines-1) +
			fmt.Sprintf("(%d lines are left out here)\n", 5000-tailLines-crashLines+1) + between(stacks, 5000-tailLines, 5000)},
	} {
		t.Run(name, func(t *testing.T) {
			if got := heard(c.text).text(); got != c.want {
				t.Errorf("%d lines are kept, want %d:\n%.2000s", strings.Count(got, "\n"), strings.Count(c.want, "\n"), got)
			}
		})
	}
}

// between returns some lines of a text.
func between(text string, from, to int) string {
	return strings.Join(slices.Collect(strings.Lines(text))[from:to], "")
}

func TestWordsToSave(t *testing.T) {
	stacks := strings.Repeat("goroutine 7 [running]:\n", 5000)
	piece := strings.Repeat("x", maxLine)
	for name, c := range map[string]struct{ text, has, lacks string }{
		"nothing":     {"", "<31>pcd: pcd was killed\n", "a line"},
		"the end":     {strings.Repeat("a line\n", 300) + "the last\n", "<31>pcd: a line\n<31>pcd: the last\n", "goroutine"},
		"a crash":     {"before\npanic: a mistake\n" + stacks, "pcd was killed\n<31>pcd: panic: a mistake\n<31>pcd: goroutine", "before"},
		"two crashes": {"panic: a mistake\n" + stacks + "SIGQUIT: quit\n" + stacks, "pcd was killed\n<31>pcd: SIGQUIT: quit\n<31>pcd: goroutine", "mistake"},
		"no crash":    {piece + "panic: a stranger's\n" + strings.Repeat("a line\n", 300), "<31>pcd: a line\n", "stranger"},
		"a long line": {"before\n" + strings.Repeat("é", 5000) + "\nthe last\n", "é\n<31>pcd: the last\n", "�"},
		"the code":    {"state: blank\nenrollment code: EYWC-7XEG\nthe last\n", "blank\n<31>pcd: the last\n", "EYWC"},
	} {
		t.Run(name, func(t *testing.T) {
			words := wordsToSave("was killed", heard(c.text))
			if kept := words[:min(len(words), pstore.MaxWords)]; !strings.HasPrefix(kept, "<31>pcd: pcd was killed\n") ||
				!strings.Contains(kept, c.has) || strings.Contains(kept, c.lacks) {
				t.Errorf("of %q are saved %q", c.text[:min(len(c.text), 100)], kept)
			}
		})
	}
}
