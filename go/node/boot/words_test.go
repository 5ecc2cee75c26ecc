package boot

import (
	"strings"
	"testing"

	"powercloud.unidatum.com/go/sys/pstore"
)

func TestWordsToSave(t *testing.T) {
	stacks := strings.Repeat("goroutine 7 [running]:\n", 300)
	for name, c := range map[string]struct{ text, has, lacks string }{
		"nothing":     {"", "<31>pcd: pcd was killed\n", "a line"},
		"the end":     {strings.Repeat("a line\n", 300) + "the last\n", "<31>pcd: a line\n<31>pcd: the last\n", "goroutine"},
		"a crash":     {"before\npanic: a mistake\n" + stacks, "pcd was killed\n<31>pcd: panic: a mistake\n<31>pcd: goroutine", "before"},
		"a long line": {"before\n" + strings.Repeat("é", 5000) + "\nthe last\n", "é\n<31>pcd: the last\n", "�"},
		"the code":    {"state: blank\nenrollment code: EYWC-7XEG\nthe last\n", "blank\n<31>pcd: the last\n", "EYWC"},
	} {
		t.Run(name, func(t *testing.T) {
			words := wordsToSave("was killed", c.text)
			if kept := words[:min(len(words), pstore.MaxWords)]; !strings.HasPrefix(kept, "<31>pcd: pcd was killed\n") ||
				!strings.Contains(kept, c.has) || strings.Contains(kept, c.lacks) {
				t.Errorf("of %q are saved %q", c.text[:min(len(c.text), 100)], kept)
			}
		})
	}
}
