package logs

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"powercloud.unidatum.com/go/sys/kernellog"
	"powercloud.unidatum.com/go/sys/pstore"
)

func TestFromKernel(t *testing.T) {
	started := time.Date(2026, 12, 1, 10, 0, 0, 0, time.FixedZone("here", 3600))
	for _, c := range []struct {
		record       kernellog.Record
		level        Level
		source, text string
	}{
		{kernellog.Record{Priority: 5, Text: "Linux version 6.1: x"}, Notice, "kernel", "Linux version 6.1: x"},
		{kernellog.Record{Priority: 7, Facility: 3, Text: "pcd: time=2026-12-01T09:00:00Z level=WARN msg=a"}, Warning, "pcd", "msg=a"},
		{kernellog.Record{Priority: 7, Facility: 3, Text: `pcinit: level=ERROR+2 msg="b c"`}, Error, "pcinit", `msg="b c"`},
		{kernellog.Record{Priority: 7, Facility: 3, Text: "pcd: panic: a mistake"}, Info, "pcd", "panic: a mistake"},
		{kernellog.Record{Priority: 7, Facility: 3, Text: "pcd: level=DEBUG-1"}, Debug, "pcd", ""},
		{kernellog.Record{Priority: 7, Facility: 3, Text: "pcd: level=ERRORS x"}, Info, "pcd", "level=ERRORS x"},
		{kernellog.Record{Priority: 0, Facility: 3, Text: "pcinit: level=INFO last words"}, Emergency, "pcinit", "level=INFO last words"},
		{kernellog.Record{Priority: 6, Facility: 1, Text: "Not A Name: x"}, Info, "program", "Not A Name: x"},
	} {
		c.record.Uptime, c.record.Sequence = 1500*time.Millisecond, 4
		e := fromKernel(c.record, started)
		want := entry{Sequence: 5, Record: Record{
			Time: time.Date(2026, 12, 1, 9, 0, 1, 500_000_000, time.UTC), Uptime: 1500 * time.Millisecond,
			Level: c.level, Source: c.source, Text: c.text,
		}}
		if e != want {
			t.Errorf("%+v became %+v", c.record, e)
		}
	}
}

func TestLines(t *testing.T) {
	e := entry{Sequence: 7, Record: Record{
		Time: time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), Uptime: 3, Level: Warning, Source: "pcd", Text: "a\n\x1b[2J<\"\\\u2028",
	}}
	line, err := e.encode()
	if err != nil || bytes.Count(line.bytes, []byte("\n")) != 1 || bytes.ContainsRune(line.bytes, '\x1b') || line.sequence != 7 {
		t.Fatalf("%q, %v", line.bytes, err)
	}
	if got, err := decodeEntry(bytes.TrimSuffix(line.bytes, []byte("\n"))); got != e || err != nil {
		t.Errorf("%+v, %v", got, err)
	}
	long := entry{Record: Record{Source: strings.Repeat("s", 99), Text: "\xff" + strings.Repeat("ö", maxText)}}
	line, err = long.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeEntry(line.bytes)
	if err != nil || len(got.Text) > maxText || len(got.Text) < maxText-1 || !utf8.ValidString(got.Text) || len(got.Source) != maxSource || !got.Time.IsZero() {
		t.Errorf("%d bytes of text from %q, %v", len(got.Text), got.Source, err)
	}
	for _, line := range []string{"", "{", "{}", `{"source":"x","level":"loud"}`, `{"source":"x","level":7}`, `{"source":"` + strings.Repeat("s", 33) + `"}`, "\x00\x00"} {
		if e, err := decodeEntry([]byte(line)); err == nil {
			t.Errorf("%q was taken for %+v", line, e)
		}
	}
	far := entry{Record: Record{Time: time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), Source: "pcd"}}
	if line, err := far.encode(); err != nil || bytes.Contains(line.bytes, []byte("time")) {
		t.Errorf("%q, %v", line.bytes, err)
	}
	if _, err := Level(8).MarshalText(); err == nil || Level(8).String() != "level 8" {
		t.Error("level 8 has a name")
	}
}

func TestPanicRecords(t *testing.T) {
	d := pstore.Dump{Reason: "Panic", Count: 1, ID: 1_700_000_000, Files: []string{"dmesg-efi_pstore-170000000000101001"},
		Text: "<6>[    3.141592] eth0: up\n<31>[    4.5][    T1] pcd: level=WARN msg=x\n<30>[    5.0] pcd: level=WARN msg=x\n<0>no time\nplain\n<x>[1] y\n"}
	at := time.Unix(1_700_000_000, 0).UTC()
	want := []Record{
		{Time: at, Level: Critical, Source: "log", Text: "an earlier boot ended badly; the end of the kernel's log was saved after: panic"},
		{Time: at, Uptime: 3141592 * time.Microsecond, Level: Info, Source: "kernel", Text: "eth0: up"},
		{Time: at, Level: Debug, Source: "program", Text: "[    4.5][    T1] pcd: level=WARN msg=x"},
		{Time: at, Uptime: 5 * time.Second, Level: Info, Source: "pcd", Text: "level=WARN msg=x"},
		{Time: at, Level: Emergency, Source: "kernel", Text: "no time"},
		{Time: at, Level: Info, Source: "kernel", Text: "plain"},
		{Time: at, Level: Info, Source: "kernel", Text: "<x>[1] y"},
	}
	got := panicRecords(d)
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
	ended := pstore.Dump{Reason: pstore.Ended, Count: 1, ID: 1_700_000_000, Text: "<31>pcd: pcd exited with status 2\n", Files: d.Files}
	if got := panicRecords(ended); len(got) != 2 || !strings.HasPrefix(got[0].Text, "pcd had crashed in an earlier boot") ||
		got[1].Source != "pcd" || got[1].Text != "pcd exited with status 2" || !got[1].Time.Equal(got[0].Time) {
		t.Errorf("of pcd's last words there is %+v", got)
	}
	if got := panicRecords(pstore.Dump{}); len(got) != 1 || !got[0].Time.IsZero() {
		t.Errorf("%+v", got)
	}
}

func FuzzPanicRecord(f *testing.F) {
	f.Add("<6>[    3.141592] eth0: up")
	f.Add("<31>[    4.500000][    T1] pcd: time=x level=WARN msg=x")
	f.Add("<0>[-1] x")
	f.Fuzz(func(t *testing.T, line string) {
		r := panicRecord(line)
		if r.Level > Debug || r.Uptime < 0 || r.Source == "" || len(r.Source) > maxSource || len(r.Text) > len(line) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add([]byte(`{"time":"2026-12-01T09:00:00Z","uptime":5,"level":"info","source":"pcd","text":"x","sequence":3}`))
	f.Add([]byte(`{"powercloud_log":1,"kind":"boot","boot":"b","first":0}`))
	f.Add([]byte(`{"powercloud_log":1,"kind":"crash","boot":"b","first":7,"dump":"35a7eddf2ab816f0860aeeb56b4b9198"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if h, err := parseHeading(line); err == nil && (h.Version != version || h.Boot == "") {
			t.Errorf("%+v", h)
		}
		e, err := decodeEntry(line)
		if err != nil {
			return
		}
		written, err := e.encode()
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		again, err := decodeEntry(written.bytes)
		if y := e.Time.UTC().Year(); y < 0 || y > 9999 {
			e.Time = time.Time{}
		}
		if err != nil || again.Text != e.Text || again.Source != strings.ToValidUTF8(e.Source, "\ufffd") || again.Sequence != e.Sequence || !again.Time.Equal(e.Time) {
			t.Errorf("%+v became %+v, %v", e, again, err)
		}
	})
}

func FuzzWholeLines(f *testing.F) {
	f.Add([]byte("{\"powercloud_log\":1}\n{\"level\":\"info\",\"source\":\"pcd\",\"text\":\"x\"}\n{\"le"))
	f.Add([]byte("\n\n\x00\x00"))
	f.Fuzz(func(t *testing.T, content []byte) {
		size, _ := wholeLines(content)
		if size < 0 || size > int64(len(content)) || size > 0 && content[size-1] != '\n' {
			t.Fatalf("%d of %q", size, content)
		}
		if again, _ := wholeLines(content[:size]); again != size {
			t.Errorf("%d of %q, and then %d", size, content, again)
		}
	})
}
