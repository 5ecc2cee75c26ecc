package pstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

func write(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// efi is the name of a file that EFI variables back.
func efi(seconds, part, count int) string {
	return fmt.Sprintf("dmesg-efi_pstore-%d", (seconds*100+part)*1000+count)
}

func TestPartsOfSeveralBoots(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, efi(1700000000, 1, 2), "Panic#2 Part1\n<0>[    3.5] Kernel panic - not syncing: Attempted to kill init!\n")
	write(t, dir, efi(1700000000, 2, 2), "Panic#2 Part2\n<6>[    3.1] pcinit: something\x1b[31m bad\n")
	write(t, dir, efi(1700000000, 1, 1), "Oops#1 Part1\n<1>[    3.0] BUG: unable to handle page fault\n")
	write(t, dir, efi(1600000000, 1, 1), "Panic#1 Part1\n<0>[    9.0] Kernel panic - not syncing: older\n")
	write(t, dir, "console-ramoops-0", "not a dump")
	dumps, err := Read(dir)
	if err != nil || len(dumps) != 3 {
		t.Fatalf("%d dumps, %v: %+v", len(dumps), err, dumps)
	}
	if s := dumps[0].Summary(); s != "Kernel panic - not syncing: older" {
		t.Errorf("the oldest says %q", s)
	}
	if d := dumps[1]; d.Reason != "Oops" || d.Summary() != "BUG: unable to handle page fault" {
		t.Errorf("the oops: %+v", d)
	}
	d := dumps[2]
	if d.Reason != "Panic" || d.Count != 2 || len(d.Files) != 2 ||
		!strings.HasPrefix(d.Text, "<6>[    3.1] pcinit: something?[31m bad\n<0>") {
		t.Errorf("the newest: %+v", d)
	}
	if err := Remove(dir, d); err != nil {
		t.Fatal(err)
	}
	if err := Remove(dir, d); err != nil {
		t.Error("removing again:", err)
	}
	if dumps, err := Read(dir); len(dumps) != 2 || err != nil {
		t.Errorf("%d dumps are left, %v", len(dumps), err)
	}
}

// TestPartsWrittenSlowly has dumps whose parts were written at other times, as the
// kernel numbers them.
func TestPartsWrittenSlowly(t *testing.T) {
	dir := t.TempDir()
	const began = 1700000000
	for part := 1; part <= 9; part++ {
		write(t, dir, efi(began+part/2, part, 1), fmt.Sprintf("Panic#1 Part%d\nfirst %d\n", part, part))
		if part != 2 { // One that the firmware lost.
			write(t, dir, efi(began+40+part*7, part, 1), fmt.Sprintf("Panic#1 Part%d\nsecond %d\n", part, part))
		}
		// What remains of one whose first parts are gone.
		if part > 7 {
			write(t, dir, efi(began+4000, part, 1), fmt.Sprintf("Panic#1 Part%d\nthird %d\n", part, part))
		}
	}
	// Another event of the boot before, in the same second.
	write(t, dir, efi(began, 1, 2), "Oops#2 Part1\nbetween\n")
	dumps, err := Read(dir)
	if err != nil || len(dumps) != 4 {
		t.Fatalf("%d dumps, %v: %+v", len(dumps), err, dumps)
	}
	for i, want := range []struct {
		text  string
		files int
	}{{"first 9\nfirst 8\n", 9}, {"between\n", 1}, {"second 9\nsecond 8\n", 8}, {"third 9\nthird 8\n", 2}} {
		if d := dumps[i]; len(d.Files) != want.files || !strings.HasPrefix(d.Text, want.text) {
			t.Errorf("dump %d is %+v, want %d files and %q", i, d, want.files, want.text)
		}
	}
}

func TestRamoops(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		write(t, dir, fmt.Sprintf("dmesg-ramoops-%d", i), fmt.Sprintf("Panic#1 Part1\n<0>[ 1.0] panic %d\n", i))
	}
	write(t, dir, "dmesg-ramoops-3.enc.z", "\x00\x01")
	dumps, err := Read(dir)
	if err != nil || len(dumps) != 4 {
		t.Fatalf("%d dumps, %v", len(dumps), err)
	}
}

func TestNoStore(t *testing.T) {
	if dumps, err := Read(filepath.Join(t.TempDir(), "none")); dumps != nil || err != nil {
		t.Errorf("%v, %v", dumps, err)
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "dmesg-ramoops-0", "Panic#1 Part1\n"+strings.Repeat("a long line\n", 200_000))
	dumps, err := Read(dir)
	if err != nil || len(dumps) != 1 || len(dumps[0].Text) > maxDump || !strings.HasPrefix(dumps[0].Text, "a long line\n") {
		t.Errorf("%d dumps, %v", len(dumps), err)
	}
	if err := Remove(dir, Dump{Files: []string{"../../etc/nothing"}}); err != nil {
		t.Error("a name outside of the folder is taken for one inside:", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("dmesg-efi_pstore-170000000000101002", []byte("Panic#2 Part1\n<0>[ 3.5] Kernel panic\n"))
	f.Add("dmesg-ramoops-0", []byte("Oops#1 Part1\nBUG\n"))
	f.Add("dmesg-efi_pstore-1.enc.z", []byte{0})
	f.Add("console-ramoops-0", []byte("x"))
	f.Fuzz(func(t *testing.T, name string, content []byte) {
		parsed, ok := parse(name, content)
		if !ok {
			return
		}
		following := parsed
		following.part++
		dumps := assemble([]file{following, parsed})
		if _, e := parsed.moment(); e.store == "" && len(dumps) != 1 {
			t.Fatalf("two parts became %d dumps", len(dumps))
		}
		text := dumps[0].Text + dumps[0].Summary()
		if !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b\r\u0085") {
			t.Errorf("the text isn't plain: %q", text)
		}
	})
}
