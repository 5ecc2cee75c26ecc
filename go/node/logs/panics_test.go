package logs

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/sys/pstore"
)

// TestPanics has one found at two boots, and another at the second: each is kept once,
// and the one before is still to be had.
func TestPanics(t *testing.T) {
	folder := t.TempDir()
	first, second := pstore.Dump{Reason: "Panic", Text: "first\n"}, pstore.Dump{Reason: "Oops", Text: strings.Repeat("long\n", 100_000) + "second\n"}
	r := open(t, folder, "a")
	if err := errors.Join(add(r, numbered(t, 0, 3, 1)), r.close()); err != nil {
		t.Fatal(err)
	}
	r = open(t, folder, "b")
	if err := errors.Join(copyPanics(r, []pstore.Dump{first}), copyPanics(r, []pstore.Dump{first}), add(r, numbered(t, 3, 5, 1))); err != nil {
		t.Fatal(err)
	}
	got := texts(t, reader(r, "b"), Options{Boot: Previous})
	if len(got) != 5 || !slices.Equal(got[:3], numbers(0, 3)) || got[4] != "first" {
		t.Errorf("the boot before: %q", got)
	}
	if got := texts(t, reader(r, "b"), Options{}); !slices.Equal(got, numbers(3, 5)) {
		t.Errorf("this boot: %q", got)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	r = open(t, folder, "c")
	if got := texts(t, reader(r, "c"), Options{Boot: Panic}); len(got) != 2 || got[1] != "first" {
		t.Errorf("the last panic: %q", got)
	}
	if got := texts(t, reader(r, "c"), Options{Boot: Previous}); !slices.Equal(got, numbers(3, 5)) {
		t.Errorf("the boot before: %q", got)
	}
	if err := copyPanics(r, []pstore.Dump{first, second}); err != nil {
		t.Fatal(err)
	}
	got = texts(t, reader(r, "c"), Options{Boot: Panic})
	if len(got) < 100 || got[len(got)-1] != "second" || slices.Contains(got, "first") {
		t.Errorf("the last panic has %d lines", len(got))
	}
	if bytes, _ := size(t, folder); bytes > MinBound {
		t.Errorf("the ring has %d bytes", bytes)
	}
}

// TestCrashHidesNoPanic has the kernel panic, and pcd crash some boots later: the panic is
// still the last one. With the boot before there is what was found since, of both.
func TestCrashHidesNoPanic(t *testing.T) {
	panicked := pstore.Dump{Reason: "Panic", Text: "<0>[    9.5] Kernel panic\n"}
	crashed := pstore.Dump{Reason: pstore.Ended, Text: "<31>pcd: pcd exited with status 2\n"}
	both := []pstore.Dump{panicked, crashed}
	folder := t.TempDir()
	for _, step := range []struct {
		boot                   string
		dumps                  []pstore.Dump
		panics, previous, here []string
	}{
		{"a", nil, nil, nil, numbers(0, 1)},
		{"b", both[:1], []string{"Kernel panic"}, []string{"0", "Kernel panic"}, numbers(1, 2)},
		{"c", nil, []string{"Kernel panic"}, numbers(1, 2), numbers(2, 3)},
		// The store still has both.
		{"d", both, []string{"Kernel panic"}, []string{"2", "pcd exited with status 2"}, numbers(3, 4)},
		{"e", both, []string{"Kernel panic"}, numbers(3, 4), numbers(4, 5)},
	} {
		r := open(t, folder, step.boot)
		at := int(step.boot[0] - 'a')
		if err := errors.Join(copyPanics(r, step.dumps), copyPanics(r, step.dumps), add(r, numbered(t, at, at+1, 1)), r.close()); err != nil {
			t.Fatal(err)
		}
		for part, want := range map[Boot][]string{Panic: step.panics, Previous: step.previous, Current: step.here} {
			// What introduces them is tested elsewhere.
			got := slices.DeleteFunc(texts(t, reader(r, step.boot), Options{Boot: part}), func(text string) bool { return strings.Contains(text, "earlier boot") })
			if !slices.Equal(got, want) {
				t.Errorf("at boot %s, of the %s one there is %q, want %q", step.boot, part, got, want)
			}
		}
	}
}
