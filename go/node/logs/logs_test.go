package logs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/tests/output"
)

// started is when the stand-in kernel started, by the clock at the end.
var started = time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)

// config is that of a log in a folder, of one boot.
func config(folder, boot string, k *kernel) Config {
	c := Config{
		Folder: folder, Boot: boot, Bound: MinBound,
		Now: func() time.Time { return started.Add(time.Hour) }, Uptime: func() time.Duration { return time.Hour },
	}
	if k != nil {
		c.Kernel = k.open
	}
	return c
}

func newLog(t *testing.T, c Config) *Log {
	t.Helper()
	l, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// running runs a log until the function that it returns is called, or the test ends.
func running(t *testing.T, l *Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// once runs a log for as long as it takes to copy what is there.
func once(t *testing.T, l *Log) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// follow reads a log until a record says "end", once the log is open.
func follow(t *testing.T, l *Log) []Record {
	t.Helper()
	var all []Record
	errEnd := errors.New("end")
	err := l.Read(t.Context(), Options{Follow: true}, func(r Record) error {
		all = append(all, r)
		if r.Text == "end" {
			return errEnd
		}
		return nil
	})
	if !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	return all
}

// TestBoots has several boots, a pcd that is started again within one, records that
// the kernel gave up, and one that isn't understood.
func TestBoots(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state", "log")
	k := newKernel()
	k.say("Linux version")
	k.say("pcd: time=x level=WARN msg=locked")
	once(t, newLog(t, config(folder, "a", k)))
	k.say("between")
	once(t, newLog(t, config(folder, "a", k)))
	k.forget(1)
	for i := range 5 {
		k.say("early %d", i)
	}
	k.forget(4)
	k.say("garbage")
	k.say("late")
	l := newLog(t, config(folder, "a", k))
	once(t, l)
	want := []string{
		"Linux version", "msg=locked", "between", "2 records of the kernel's log were lost before they could be copied",
		"early 2", "early 3", "early 4", "the kernel's log has a record that isn't understood: garbage",
		"1 records of the kernel's log were lost before they could be copied", "late",
	}
	if got := texts(t, l, Options{}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := texts(t, l, Options{Boot: Previous}); len(got) > 0 {
		t.Errorf("before: %q", got)
	}

	k = newKernel()
	k.say("Linux version")
	l = newLog(t, config(folder, "b", k))
	once(t, l)
	if got := texts(t, l, Options{Boot: Previous}); !slices.Equal(got, want) {
		t.Errorf("the boot before: %q", got)
	}
	var got []Record
	if err := l.Read(t.Context(), Options{Boot: Current}, func(r Record) error { got = append(got, r); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0] != (Record{Time: started, Level: Info, Source: SourceKernel, Text: "Linux version"}) {
		t.Errorf("%+v", got)
	}
}

// TestFollow has records come while they are read, from the kernel and from pcd.
func TestFollow(t *testing.T) {
	k := newKernel()
	c := config(t.TempDir(), "a", k)
	c.Quiet, c.Urgent = time.Millisecond, time.Millisecond
	l := newLog(t, c)
	k.say("first")
	own := slog.New(slog.NewTextHandler(l.config.Lines, nil))
	own.Warn("before it was open")
	running(t, l)
	go func() {
		for i := range 300 {
			k.say("%d", i)
			if i%100 == 0 {
				own.Info("own", "number", i)
			}
		}
		k.say("end")
	}()
	var mine []string
	var got []string
	for _, r := range follow(t, l) {
		if r.Source == SourceDaemon {
			mine = append(mine, r.Level.String()+" "+r.Text)
			continue
		}
		got = append(got, r.Text)
	}
	if want := slices.Concat([]string{"first"}, numbers(0, 300), []string{"end"}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// The last of pcd's own lines may come after the kernel's.
	if len(mine) < 1 || mine[0] != `warning msg="before it was open"` {
		t.Errorf("%q", mine)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := l.Read(ctx, Options{Follow: true}, func(r Record) error {
		if r.Text == "end" {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestSlowReader has one that stands still while the ring goes round: the log goes on,
// and the reader is told how much it has missed.
func TestSlowReader(t *testing.T) {
	k := newKernel()
	l := newLog(t, config(t.TempDir(), "a", k))
	running(t, l)
	k.say("first")
	var got []string
	errEnd := errors.New("end")
	slow := func(r Record) error {
		text, _, _ := strings.Cut(r.Text, " ")
		got = append(got, text)
		if r.Source == SourceLog {
			got[len(got)-1] = r.Text
		}
		switch text {
		case "first":
			filler := strings.Repeat("x", 1000)
			for i := range 2000 {
				k.say("%d %s", i, filler)
			}
			k.say("middle")
			// Another reader sees that everything was written.
			errMiddle := errors.New("middle")
			err := l.Read(t.Context(), Options{Follow: true, Bytes: 100_000}, func(r Record) error {
				if r.Text == "middle" {
					return errMiddle
				}
				return nil
			})
			if !errors.Is(err, errMiddle) {
				t.Error(err)
			}
			k.say("end")
		case "end":
			return errEnd
		}
		return nil
	}
	if err := l.Read(t.Context(), Options{Follow: true}, slow); !errors.Is(err, errEnd) {
		t.Fatal(err)
	}
	var lost int
	if n, err := fmt.Sscanf(got[1], "%d bytes of the log were given up before they could be read", &lost); n != 1 || err != nil {
		t.Fatalf("%.300q", got)
	}
	kept := len(got) - 4
	// A line has the filler and about 100 bytes more.
	if missing := 2000 - kept; lost < missing*1050 || lost > missing*1250 || !slices.Equal(got[2:2+kept], numbers(2000-kept, 2000)) {
		t.Errorf("%d bytes were lost and %d lines are there, %.300q", lost, kept, got)
	}
}

// TestSync has records that may stay unsynced and others that may not.
func TestSync(t *testing.T) {
	for _, c := range []struct {
		quiet, urgent time.Duration
		text          string
		syncs         bool
	}{
		{time.Hour, time.Nanosecond, "level=WARN x", true},
		{time.Hour, time.Nanosecond, "level=ERROR x", true},
		{time.Nanosecond, time.Hour, "level=INFO x", true},
		{time.Hour, time.Nanosecond, "level=INFO x", false},
	} {
		config := config(t.TempDir(), "a", nil)
		config.Quiet, config.Urgent = c.quiet, c.urgent
		l := newLog(t, config)
		synced := make(chan struct{}, 10)
		l.step = func(name string) error {
			if name == "synced" {
				synced <- struct{}{}
			}
			return nil
		}
		stop := running(t, l)
		if _, err := fmt.Fprintf(l.config.Lines, "%s\nend\n", c.text); err != nil {
			t.Fatal(err)
		}
		follow(t, l)
		if c.syncs {
			<-synced
		}
		stop()
		// The end syncs too, if there is anything.
		if !c.syncs && len(synced) != 1 {
			t.Errorf("%q was synced %d times", c.text, len(synced))
		}
	}
}

// TestRunAgain has reading the kernel's log fail: the next run goes on where the last
// one ended, and so does whoever follows.
func TestRunAgain(t *testing.T) {
	k := newKernel()
	l := newLog(t, config(t.TempDir(), "a", k))
	k.say("first")
	k.fail(unix.EIO)
	if err := l.Run(t.Context()); !errors.Is(err, unix.EIO) {
		t.Fatal(err)
	}
	followed := make(chan []Record)
	go func() { followed <- follow(t, l) }()
	k.say("second")
	k.fail(nil)
	running(t, l)
	k.say("end")
	var got []string
	for _, r := range <-followed {
		got = append(got, r.Text)
	}
	if want := []string{"first", "second", "end"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestWithoutKernel has a kernel's log that may not be read: pcd's own lines are kept.
func TestWithoutKernel(t *testing.T) {
	c := config(t.TempDir(), "a", nil)
	c.Kernel = func() (KernelLog, error) { return nil, fmt.Errorf("open: %w", fs.ErrPermission) }
	said := &output.Text{}
	c.Log = slog.New(slog.NewTextHandler(said, nil))
	l := newLog(t, c)
	for i := range 400 {
		if _, err := fmt.Fprintf(l.config.Lines, "level=ERROR %d\n%s", i, strings.Repeat("x", 1000)); err != nil {
			t.Fatal(err)
		}
	}
	once(t, l)
	got := texts(t, l, Options{})
	if len(got) < 300 || got[0] != "0" || !strings.HasSuffix(got[len(got)-1], "lines of pcd's were lost before they could be copied") {
		t.Errorf("%.300q", got)
	}
	if !strings.Contains(said.String(), "the kernel's log isn't kept") {
		t.Errorf("it said %q", said)
	}
	c.Kernel = func() (KernelLog, error) { return nil, unix.EIO }
	if err := newLog(t, c).Run(t.Context()); !errors.Is(err, unix.EIO) {
		t.Error(err)
	}
}

// TestPanicOfTheBootBefore has PID 1 find a panic: it comes after what the boot before
// has logged.
func TestPanicOfTheBootBefore(t *testing.T) {
	folder := t.TempDir()
	k := newKernel()
	k.say("all is well")
	once(t, newLog(t, config(folder, "a", k)))
	kept, err := pstore.Encode([]pstore.Dump{{Reason: "Panic", Count: 1, Text: "<0>[    9.5] Kernel panic\n"}})
	if err != nil {
		t.Fatal(err)
	}
	c := config(folder, "b", newKernel())
	c.Panics = filepath.Join(t.TempDir(), pstore.KeptName)
	if err := os.WriteFile(c.Panics, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	l := newLog(t, c)
	once(t, l)
	want := []string{"all is well", "an earlier boot ended badly; the end of the kernel's log was saved after: panic", "Kernel panic"}
	if got := texts(t, l, Options{Boot: Previous}); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// Who asks before the log is open gets all of it.
	synctest.Test(t, func(t *testing.T) {
		l := newLog(t, c)
		var got []string
		var err error
		go func() {
			err = l.Read(t.Context(), Options{Boot: Panic}, func(r Record) error {
				got = append(got, r.Text)
				return nil
			})
		}()
		synctest.Wait()
		once(t, l)
		synctest.Wait()
		if err != nil || !slices.Equal(got, want[1:]) {
			t.Errorf("read before it was open: %q, %v", got, err)
		}
	})
	// A file that isn't understood keeps nothing else from being logged.
	if err := os.WriteFile(c.Panics, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	said := &output.Text{}
	c.Log = slog.New(slog.NewTextHandler(said, nil))
	once(t, newLog(t, c))
	if !strings.Contains(said.String(), "what earlier boots ended with can't be kept") {
		t.Errorf("it said %q", said)
	}
}

// TestFullDiskIsSurvived has others fill up the disk: what is lost is counted, and the
// log is written again later.
func TestFullDiskIsSurvived(t *testing.T) {
	disk := mountSmall(t, "3m")
	said := &output.Text{}
	c := config(filepath.Join(disk, "log"), "a", nil)
	c.Log = slog.New(slog.NewTextHandler(said, nil))
	l := newLog(t, c)
	running(t, l)
	say := func(text string) {
		if _, err := fmt.Fprintln(l.config.Lines, text); err != nil {
			t.Fatal(err)
		}
	}
	say("first")
	errFirst := errors.New("first")
	if err := l.Read(t.Context(), Options{Follow: true}, func(Record) error { return errFirst }); !errors.Is(err, errFirst) {
		t.Fatal(err)
	}
	other := fill(t, disk)
	total := 2
	for ; !strings.Contains(said.String(), "the disk is full"); total++ {
		say("filler " + strings.Repeat("x", 2000))
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	// Until there is room for the last line.
	for waits := true; waits; {
		l.config.Lines.mu.Lock()
		waits = l.config.Lines.size > 0
		l.config.Lines.mu.Unlock()
	}
	say("end")
	seen := 0
	for _, r := range follow(t, l) {
		n := 0
		if r.Source == SourceDaemon {
			n = 1
		} else if _, err := fmt.Sscanf(r.Text, "%d", &n); err != nil || !strings.Contains(r.Text, "were lost") {
			t.Errorf("%+v", r)
		}
		seen += n
	}
	if seen != total {
		t.Errorf("%d lines are there or were counted as lost, of %d", seen, total)
	}
	if !strings.Contains(said.String(), "the node's log is written again") {
		t.Errorf("it said %q", said)
	}
}

func TestNew(t *testing.T) {
	for _, c := range []Config{{}, {Folder: "x"}, {Boot: "x"}, {Folder: "x", Boot: "x", Bound: MinBound - 1}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
	if boot, err := ThisBoot(BootID); err != nil || len(boot) != 36 {
		t.Errorf("this boot is %q, %v", boot, err)
	}
	if boot, err := ThisBoot("/dev/null"); err == nil {
		t.Errorf("this boot is %q", boot)
	}
	if uptime() <= 0 {
		t.Error("the kernel has just started")
	}
}
