package kernel

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tree makes a tree with files in it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestReadLockdown(t *testing.T) {
	const file = "kernel/security/lockdown"
	for name, c := range map[string]struct {
		files map[string]string
		want  Lockdown
		fails bool
	}{
		"none":                {map[string]string{file: "[none] integrity confidentiality\n"}, None, false},
		"integrity":           {map[string]string{file: "none [integrity] confidentiality\n"}, Integrity, false},
		"confidentiality":     {map[string]string{file: "none integrity [confidentiality]\n"}, Confidentiality, false},
		"another module only": {map[string]string{"kernel/security/lsm": "capability,yama"}, None, false},
		"no securityfs":       {nil, Unknown, false},
		"an empty file":       {map[string]string{file: ""}, Unknown, true},
		"no brackets":         {map[string]string{file: "none integrity confidentiality\n"}, Unknown, true},
		"an unknown mode":     {map[string]string{file: "none integrity confidentiality [\x1b[31m]\n"}, Unknown, true},
		"a folder":            {map[string]string{file + "/a": ""}, Unknown, true},
		"far too long":        {map[string]string{file: strings.Repeat("none ", 10_000) + "[integrity]"}, Unknown, true},
	} {
		if got, err := ReadLockdown(tree(t, c.files)); got != c.want || (err != nil) != c.fails {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestRelease(t *testing.T) {
	want, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Release(); err != nil || got != strings.TrimSpace(string(want)) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
}

func TestUptime(t *testing.T) {
	// The kernel writes it with two digits after the point, in seconds.
	read := func() time.Duration {
		text, err := os.ReadFile("/proc/uptime")
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), " ")
		seconds, err := strconv.ParseFloat(first, 64)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(seconds * float64(time.Second))
	}
	const digit = 10 * time.Millisecond
	before := read()
	got, err := Uptime()
	after := read()
	if err != nil || got < before-digit || got > after+2*digit {
		t.Errorf("%v, %v; want it from %v to %v", got, err, before, after)
	}
}

func FuzzParseLockdown(f *testing.F) {
	f.Add("none [integrity] confidentiality\n")
	f.Add("[none]")
	f.Add("[]")
	f.Fuzz(func(t *testing.T, text string) {
		switch mode, err := parseLockdown(text); mode {
		case None, Integrity, Confidentiality:
			if err != nil || !strings.Contains(text, "["+string(mode)+"]") {
				t.Errorf("%q, %v", mode, err)
			}
		case Unknown:
			if !errors.Is(err, errLockdown) {
				t.Errorf("%q, %v", mode, err)
			}
		default:
			t.Errorf("%q, %v", mode, err)
		}
	})
}
