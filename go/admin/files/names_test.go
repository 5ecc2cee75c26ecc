package files

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestLocalPath(t *testing.T) {
	for _, test := range []struct {
		name          string
		unix, windows bool
	}{
		{"a", true, true},
		{"a/b/c.txt", true, true},
		{"..a/b..", true, false},
		{".hidden", true, true},
		{"with space/ü", true, true},
		{"console/common/lpt", true, true},
		{"com10", true, true},
		{"", false, false},
		{"/", false, false},
		{"/etc/passwd", false, false},
		{"a/", false, false},
		{"a//b", false, false},
		{".", false, false},
		{"a/./b", false, false},
		{"..", false, false},
		{"../a", false, false},
		{"a/../../b", false, false},
		{"a\x00b", false, false},
		{`a\b`, true, false},
		{`..\a`, true, false},
		{`C:\a`, true, false},
		{"C:", true, false},
		{"file:stream", true, false},
		{"nul", true, false},
		{"a/NUL.txt", true, false},
		{"aux .c", true, false},
		{"COM1", true, false},
		{"com¹.log", true, false},
		{"LPT9/x", true, false},
		{"CONIN$", true, false},
		{"trailing.", true, false},
		{"trailing ", true, false},
		{"question?", true, false},
		{"tab\t", true, false},
	} {
		for goos, ok := range map[string]bool{"linux": test.unix, "darwin": test.unix, "windows": test.windows} {
			path, err := LocalPath(test.name, goos)
			if (err == nil) != ok {
				t.Errorf("%s: %q: path %q, error %v", goos, test.name, path, err)
			}
		}
	}
}

// FuzzLocalPath looks for a name that leads out of the directory.
func FuzzLocalPath(f *testing.F) {
	for _, name := range []string{"a/b", "../a", "a/../../b", "/a", `..\a`, "C:a", "NUL", "a\x00", "a//b", "./a"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		for _, goos := range []string{"linux", "windows"} {
			path, err := LocalPath(name, goos)
			if err != nil {
				continue
			}
			if !filepath.IsLocal(path) || filepath.Clean(path) != path || filepath.ToSlash(path) != name {
				t.Errorf("%s: %q became %q", goos, name, path)
			}
			if goos == "windows" && strings.ContainsAny(path, ":\\") {
				t.Errorf("windows: %q became %q", name, path)
			}
		}
	})
}
