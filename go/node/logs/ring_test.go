package logs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/tests/namespace"
)

func TestMain(m *testing.M) { namespace.Main(m) }

func noStep(string) error { return nil }

// numbered returns lines with consecutive numbers, each as long as size or a little
// longer.
func numbered(t *testing.T, from, to, size int) []line {
	t.Helper()
	var all []line
	for i := from; i < to; i++ {
		e := entry{Sequence: uint64(i) + 1, Record: Record{Level: Info, Source: "test", Text: strconv.Itoa(i) + " " + strings.Repeat("x", size)}}
		line, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	return all
}

// texts reads part of a log to its end: the first word of each record's text, and the
// whole of what the log itself says.
func texts(t *testing.T, l *Log, o Options) []string {
	t.Helper()
	var all []string
	err := l.Read(t.Context(), o, func(r Record) error {
		text := r.Text
		if r.Source == "test" {
			text, _, _ = strings.Cut(text, " ")
		}
		all = append(all, text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// add appends lines.
func add(r *ring, lines []line) error {
	_, err := r.append(lines)
	return err
}

// reader returns a log that has a ring only to be read.
func reader(r *ring, boot string) *Log {
	return &Log{config: Config{Folder: r.folder, Boot: boot}, ring: r}
}

// numbers are consecutive numbers as texts.
func numbers(from, to int) []string {
	var all []string
	for i := from; i < to; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func open(t *testing.T, folder, boot string) *ring {
	t.Helper()
	r, err := openRing(folder, boot, MinBound, noStep)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// size returns how many bytes the files of a folder have, and how many there are.
func size(t *testing.T, folder string) (bytes int64, files int) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		bytes += info.Size()
	}
	return bytes, len(entries)
}

// TestBounds has boots that log more than there is room for. Each keeps its newest
// half, and at least that of the boot before stays.
func TestBounds(t *testing.T) {
	folder := t.TempDir()
	for boot := range 3 {
		r := open(t, folder, fmt.Sprint("boot ", boot))
		const count = 1500
		for i := 0; i < count; i += 10 {
			if err := add(r, numbered(t, i, i+10, 1000)); err != nil {
				t.Fatal(err)
			}
			if bytes, _ := size(t, folder); bytes > MinBound {
				t.Fatalf("the ring has %d bytes", bytes)
			}
		}
		l := reader(r, r.boot)
		for _, part := range []Boot{Current, Previous} {
			got := texts(t, l, Options{Boot: part})
			if part == Previous && boot == 0 {
				if len(got) > 0 {
					t.Errorf("before the first boot there was %q", got)
				}
				continue
			}
			kept := len(got) - 1
			if kept < 400 || kept > 500 || !strings.Contains(got[0], "given up before") || !slices.Equal(got[1:], numbers(count-kept, count)) {
				t.Errorf("boot %d: of the %s one there is %.300q", boot, part, got)
			}
		}
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyBoots has a boot loop, in which every boot logs a little.
func TestManyBoots(t *testing.T) {
	folder := t.TempDir()
	for boot := range maxSegments + 20 {
		r := open(t, folder, fmt.Sprint("boot ", boot))
		if err := errors.Join(add(r, numbered(t, boot, boot+1, 10)), r.close()); err != nil {
			t.Fatal(err)
		}
		if _, files := size(t, folder); files > maxSegments {
			t.Fatalf("there are %d files", files)
		}
		if got := texts(t, reader(r, r.boot), Options{Boot: Previous}); boot > 0 && !slices.Equal(got, numbers(boot-1, boot)) {
			t.Errorf("the boot before %d has %q", boot, got)
		}
	}
}

// TestTornAtEveryByte has the last file end anywhere, as after a power cut, and with
// zeros after that. The next boot finds every whole line, and the one after it too.
func TestTornAtEveryByte(t *testing.T) {
	original := t.TempDir()
	r := open(t, original, "old")
	if err := errors.Join(add(r, numbered(t, 0, 4, 3)), r.close()); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(original, segmentName(0)))
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(content) + 1 {
		tails := []string{"", "\x00\x00\x00\x00", "\x00\n\x00"}
		if cut%5 != 0 {
			// All of them everywhere would take long.
			tails = tails[:1]
		}
		for _, tail := range tails {
			folder := filepath.Join(original, fmt.Sprintf("%d-%x", cut, tail))
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, segmentName(0)), append(slices.Clone(content[:cut]), tail...), 0o600); err != nil {
				t.Fatal(err)
			}
			whole := max(strings.Count(string(content[:cut]), "\n")-1, 0)
			for _, boot := range []string{"old", "new"} {
				r := open(t, folder, boot)
				if err := add(r, numbered(t, whole, whole+1, 3)); err != nil {
					t.Fatal(err)
				}
				got := texts(t, reader(r, "old"), Options{})
				// Where the heading is no heading, nothing can be told.
				if want := numbers(0, whole+1); !slices.Equal(got, want) {
					t.Errorf("cut at %d, then %q: %q, want %q", cut, tail, got, want)
				}
				if err := r.close(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

var errCutOff = errors.New("the power is cut")

// TestCutAtEveryStep cuts the power after each step in turn. What was synced is there
// afterwards, nothing is there twice, and the ring goes on.
func TestCutAtEveryStep(t *testing.T) {
	dump := pstore.Dump{Reason: "Panic", Text: "the end\n"}
	for cut := 0; ; cut++ {
		folder := t.TempDir()
		steps, synced, written := 0, 0, 0
		step := func(string) error {
			if steps++; steps > cut {
				return errCutOff
			}
			return nil
		}
		work := func() error {
			r, err := openRing(folder, "old", MinBound, step)
			if err != nil {
				return err
			}
			if err := copyPanics(r, []pstore.Dump{dump}); err != nil {
				return err
			}
			for ; written < 700; written += 50 {
				if err := add(r, numbered(t, written, written+50, 1000)); err != nil {
					return err
				}
				if written%100 == 0 {
					if err := r.sync(); err != nil {
						return err
					}
					synced = written + 50
				}
			}
			return r.close()
		}
		err := work()
		if err != nil && !errors.Is(err, errCutOff) {
			t.Fatal(err)
		}
		r := open(t, folder, "old")
		at := int(r.sequence)
		if at < synced || at > written+50 {
			t.Fatalf("cut after step %d: %d records are there, %d were synced and %d written", cut, at, synced, written)
		}
		if e := errors.Join(copyPanics(r, []pstore.Dump{dump}), add(r, numbered(t, at, 700, 1000)), r.close()); e != nil {
			t.Fatal(e)
		}
		got := texts(t, reader(r, "old"), Options{})
		if strings.Contains(got[0], "given up") {
			got = got[1:]
		}
		if !slices.Equal(got, numbers(700-len(got), 700)) || len(got) < 400 {
			t.Fatalf("cut after step %d: %q", cut, got)
		}
		if got := texts(t, reader(r, "old"), Options{Boot: Panic}); len(got) != 2 || got[1] != "the end" {
			t.Fatalf("cut after step %d: the panic is %q", cut, got)
		}
		if err == nil {
			t.Logf("%d steps", cut)
			return
		}
	}
}

// TestForeignFiles has what isn't the ring's beside it, and segments of another version.
func TestForeignFiles(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"notes.txt": "x", segmentName(0): "{\"powercloud_log\":2}\nx\n", segmentName(500): "", segmentName(600) + unfinished: "x", "0000000000000000700.log.bak": "x",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := open(t, folder, "a")
	if err := add(r, numbered(t, 0, 1, 1)); err != nil {
		t.Fatal(err)
	}
	if got := texts(t, reader(r, "a"), Options{}); !slices.Equal(got, numbers(0, 1)) {
		t.Errorf("%q", got)
	}
	if _, files := size(t, folder); files != 4 {
		t.Errorf("there are %d files", files)
	}
}

// TestGivenUpWhileRead has what is read of the boot before given up in the meantime.
func TestGivenUpWhileRead(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, "a")
	if err := errors.Join(add(r, numbered(t, 0, 200, 1000)), r.close()); err != nil {
		t.Fatal(err)
	}
	r = open(t, folder, "b")
	all := r.snapshot()
	var got []Record
	err := reader(r, "b").Read(t.Context(), Options{Boot: Previous}, func(record Record) error {
		for len(r.segments) > 0 {
			if err := r.remove(0); err != nil {
				return err
			}
		}
		got = append(got, record)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	// The first file was read in one piece.
	want := fmt.Sprintf(givenUp, all[len(all)-1].end()-all[0].end())
	if last := len(got) - 1; last < 50 || got[last].Text != want || !strings.HasPrefix(got[last-1].Text, strconv.Itoa(last-1)+" ") {
		t.Errorf("%d records, the last is %+v, want %q", len(got), got[last], want)
	}
}

// TestVectors has segments as they were first written: they are still read, and written
// like that.
func TestVectors(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, "85ff65d4-70a0-4fc3-ab01-1db6d61b3f58")
	at := time.Date(2026, 12, 1, 9, 0, 0, 250_000_000, time.UTC)
	dump := pstore.Dump{Reason: "Panic", Count: 1, ID: 1_700_000_000, Text: "<0>[    3.500000] Kernel panic - not syncing: x\n", Files: []string{"dmesg-efi_pstore-170000000000101001"}}
	var lines []line
	for _, e := range []entry{
		{Record: Record{Time: at, Level: Notice, Source: SourceKernel, Text: "Linux version 6.1"}, Sequence: 1},
		{Record: Record{Time: at.Add(time.Second), Uptime: time.Second, Level: Warning, Source: SourceDaemon, Text: "msg=\"\x1b<ö\""}, Sequence: 2},
		{Record: Record{Level: Info, Source: SourceDaemon, Text: "without a time"}},
	} {
		l, err := e.encode()
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	ended := pstore.Dump{Reason: pstore.Ended, Count: 1, ID: 1_700_000_060, Text: "<31>pcd: pcd exited with status 2\n<31>pcd: panic: x\n", Files: []string{"dmesg-efi_pstore-170000006000101001"}}
	if err := errors.Join(copyPanics(r, []pstore.Dump{dump}), add(r, lines), copyPanics(r, []pstore.Dump{dump, ended}), r.close()); err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob("testdata/v1/*" + suffix)
	if err != nil || len(names) != 3 {
		t.Fatalf("%q, %v", names, err)
	}
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(folder, filepath.Base(name)))
		if err != nil || string(got) != string(want) {
			t.Errorf("%s is now\n%s%v", name, got, err)
		}
	}
	// Bazel's copies of the files are links, which no log has.
	vectors := t.TempDir()
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(vectors, filepath.Base(name)), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := list(vectors)
	if err != nil {
		t.Fatal(err)
	}
	r = &ring{folder: vectors, segments: all}
	if got := texts(t, reader(r, "85ff65d4-70a0-4fc3-ab01-1db6d61b3f58"), Options{}); !slices.Equal(got, []string{"Linux version 6.1", "msg=\"\x1b<ö\"", "without a time"}) {
		t.Errorf("%q", got)
	}
	if got := texts(t, reader(r, "other"), Options{Boot: Panic}); len(got) != 2 || got[1] != "Kernel panic - not syncing: x" {
		t.Errorf("%q", got)
	}
	r.segments = slices.DeleteFunc(all, func(s segment) bool { return s.Kind != kindCrash })
	if got := texts(t, reader(r, "85ff65d4-70a0-4fc3-ab01-1db6d61b3f58"), Options{Boot: Previous}); len(got) != 3 || got[2] != "panic: x" {
		t.Errorf("%q", got)
	}
}

func TestNewest(t *testing.T) {
	folder := t.TempDir()
	r := open(t, folder, "a")
	if err := add(r, numbered(t, 0, 200, 1000)); err != nil {
		t.Fatal(err)
	}
	for most, want := range map[int64][]string{1: nil, 1200: numbers(199, 200), 10_000: numbers(191, 200), 1 << 30: numbers(0, 200), 0: numbers(0, 200)} {
		if got := texts(t, reader(r, "a"), Options{Bytes: most}); !slices.Equal(got, want) {
			t.Errorf("of %d bytes: %q", most, got)
		}
	}
	l := reader(r, "a")
	for _, o := range []Options{{Boot: "x"}, {Bytes: -1}, {Boot: Previous, Follow: true}} {
		if err := l.Read(context.Background(), o, nil); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := (&Log{}).Read(t.Context(), Options{}, nil); !errors.Is(err, ErrNotOpen) {
		t.Error(err)
	}
}
