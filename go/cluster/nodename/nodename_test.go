package nodename

import (
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for _, name := range []string{"a", "1", "home-1", "my--node", "262c2fdc861a9cf", "262c2fdc861a9cf2a", "262c2fdc861a9cfg", strings.Repeat("n", 63)} {
		if err := Check(name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{
		"", "-", "-a", "a-", "Home", "a.b", "a_b", "a b", "a/b", "a\n", "ä", "a\x00", "\xff", "..", "262c2fdc861a9cf2", strings.Repeat("n", 64),
	} {
		if err := Check(name); err == nil {
			t.Errorf("%q can be a name", name)
		}
	}
	if err := Check(strings.Repeat("n", 1<<20)); err == nil || len(err.Error()) > 300 {
		t.Error("a long name makes a long error, or none")
	}
}
