package pstore

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// show does what the kernel does at its next start: it shows a variable as a file.
func show(t *testing.T, variables, dir string, at time.Time) {
	t.Helper()
	entries, err := os.ReadDir(variables)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%d variables, %v", len(entries), err)
	}
	if name := entries[0].Name(); name != "dump-type0-1-1-1700000000-D-cfc8fc79-be2e-4ddc-97f0-9f98bfe298a0" {
		t.Fatalf("the variable is called %s", name)
	}
	content, err := os.ReadFile(filepath.Join(variables, entries[0].Name()))
	if err != nil {
		t.Fatal(err)
	}
	data, found := strings.CutPrefix(string(content), "\x07\x00\x00\x00")
	if !found || len(data) > 1024 {
		t.Fatalf("the variable has %d bytes of data, and begins with %.10q", len(data), content)
	}
	write(t, dir, efi(int(at.Unix()), 1, 1), data)
}

func TestSave(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for name, c := range map[string]struct{ words, want string }{
		"short": {"<31>pcd: panic: a mistake\n<31>pcd: more\n", "<31>pcd: panic: a mistake\n<31>pcd: more\n"},
		"long":  {strings.Repeat("<31>pcd: a line\n", 100), strings.Repeat("<31>pcd: a line\n", (1024-len("Program ended#1 Part1\n"))/16)},
	} {
		t.Run(name, func(t *testing.T) {
			variables, dir := t.TempDir(), t.TempDir()
			if err := Save(variables, at, c.words); err != nil {
				t.Fatal(err)
			}
			if err := Save(variables, at, "others"); err == nil {
				t.Error("a variable was written over")
			}
			show(t, variables, dir, at)
			// The kernel's own of the same second, of two parts.
			write(t, dir, efi(1_700_000_000, 1, 2), "Panic#2 Part1\nsecond\n")
			write(t, dir, efi(1_700_000_000, 2, 2), "Panic#2 Part2\nfirst\n")
			dumps, err := Read(dir)
			if err != nil || len(dumps) != 2 {
				t.Fatalf("%+v, %v", dumps, err)
			}
			for _, d := range dumps {
				switch {
				case d.Reason == Ended && d.Text == c.want:
				case d.Reason == "Panic" && d.Text == "first\nsecond\n":
				default:
					t.Errorf("read %+v", d)
				}
				if err := Remove(dir, d); err != nil {
					t.Error(err)
				}
			}
			if left, err := Read(dir); len(left) != 0 || err != nil {
				t.Errorf("left: %+v, %v", left, err)
			}
		})
	}
}

func TestSaveWithoutVariables(t *testing.T) {
	if err := Save(filepath.Join(t.TempDir(), "none"), time.Unix(1, 0), "x\n"); err == nil {
		t.Error("words were saved where there is no place")
	}
}
