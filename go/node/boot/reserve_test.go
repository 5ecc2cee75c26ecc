package boot

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLimitReserve(t *testing.T) {
	const gigabyte = 1 << 30
	for name, c := range map[string]struct {
		before string
		total  uint64
		after  string
		fails  bool
	}{
		"a small machine":                 {"45056\n", gigabyte, "4096\n", false},
		"a large machine":                 {"67584\n", 32 * gigabyte, "67584\n", false},
		"as much as there may be":         {"4096\n", gigabyte, "4096\n", false},
		"less than there may be":          {"1000\n", gigabyte, "1000\n", false},
		"a machine of unknown memory":     {"45056\n", 0, "45056\n", false},
		"a machine with hardly any":       {"45056\n", 200, "45056\n", false},
		"a parameter that isn't a number": {"much\n", gigabyte, "much\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if err := limitReserve(root, c.total); err != nil {
				t.Errorf("without the parameter: %v", err)
			}
			file := filepath.Join(root, filepath.FromSlash(reserveName))
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := limitReserve(root, c.total); (err != nil) != c.fails {
				t.Errorf("%v", err)
			}
			// What the file had more of stays, as it doesn't in the kernel's.
			after, err := os.ReadFile(file)
			if err != nil || string(after[:len(c.after)]) != c.after {
				t.Errorf("%q, %v, want %q", after, err, c.after)
			}
		})
	}
	if total := totalMemory(); total < 64<<20 {
		t.Errorf("this machine has %d bytes of memory", total)
	}
}
