package boot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"powercloud.unidatum.com/go/sys/cgroup"
	"powercloud.unidatum.com/go/sys/pstore"
	"powercloud.unidatum.com/go/sys/reaper"
)

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// dog is a watchdog that counts.
type dog struct {
	timeout time.Duration
	fed     int
	feeding func(fed int)
}

func (d *dog) Ping() error {
	d.fed++
	d.feeding(d.fed)
	return nil
}

func (d *dog) Timeout() time.Duration { return d.timeout }

func (d *dog) Disarm() error { return nil }

// TestWatchdogs has several machines: which watchdogs are tried there, and how long do
// those that are opened wait?
func TestWatchdogs(t *testing.T) {
	software, idle := "Software Watchdog", "inactive"
	for _, test := range []struct {
		name    string
		devices [][2]string
		opened  string
	}{
		{"none", nil, ""},
		{"software alone", [][2]string{{software, idle}}, "0 for 1m0s"},
		// The kernel's own bites before the hardware's.
		{"hardware", [][2]string{{software, idle}, {"good", idle}}, "1 for 1m0s, 0 for 45s"},
		{"hardware that takes no other timeout", [][2]string{{software, idle}, {"fixed", idle}}, "1 for 20s, 0 for 15s"},
		{"hardware of which one is enough", [][2]string{{"good", idle}, {"spare", idle}, {software, idle}}, "0 for 1m0s, 2 for 45s"},
		{"hardware that the firmware started", [][2]string{{"good", idle}, {"fixed", "active"}, {software, idle}}, "0 for 1m0s, 1 for 20s, 2 for 15s"},
		{"broken hardware", [][2]string{{software, idle}, {"broken", idle}}, "0 for 1m0s"},
		{"broken hardware and good", [][2]string{{"broken", idle}, {"good", idle}, {software, idle}}, "1 for 1m0s, 2 for 45s"},
		{"broken alone", [][2]string{{"broken", "active"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Machine{WatchdogClass: t.TempDir(), Devices: "/dev", Timing: Timing{Watchdog: time.Minute}}
			for i, is := range test.devices {
				folder := filepath.Join(m.WatchdogClass, fmt.Sprintf("watchdog%d", i))
				err := os.Mkdir(folder, 0o700)
				for i, file := range []string{"identity", "state"} {
					err = errors.Join(err, os.WriteFile(filepath.Join(folder, file), []byte(is[i]), 0o600))
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			identity := func(path string) (string, string) {
				number := strings.TrimPrefix(path, "/dev/watchdog")
				i, err := strconv.Atoi(number)
				if err != nil {
					t.Fatal(err)
				}
				return number, test.devices[i][0]
			}
			var opened []string
			open := func(path string, timeout time.Duration) (device, error) {
				number, is := identity(path)
				switch is {
				case "broken":
					return nil, errors.New("broken")
				case "fixed":
					timeout = 20 * time.Second
				}
				opened = append(opened, fmt.Sprintf("%s for %v", number, timeout))
				return &dog{timeout: timeout}, nil
			}
			guards := openWatchdogs(m, open, discard())
			if strings.Join(opened, ", ") != test.opened || len(guards) != len(opened) {
				t.Errorf("%d run, opened were %q, want %s", len(guards), opened, test.opened)
			}
		})
	}
}

func TestWatchdogStarvesWhenAPartHangs(t *testing.T) {
	now := time.Unix(0, 0)
	l := newLiveness()
	l.now = func() time.Time { return now }
	l.expect("a part", time.Minute)
	l.expect("another", time.Second)
	l.done("another")
	if err := l.late(); err != nil {
		t.Error(err)
	}
	now = now.Add(time.Minute + 1)
	if err := l.late(); err == nil || err.Error() != "a part hasn't got on for 1m0s" {
		t.Errorf("late: %v", err)
	}
	l.expect("a part", time.Minute)
	if err := l.late(); err != nil {
		t.Error(err)
	}
}

func TestFeeding(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	l := newLiveness()
	d := &dog{timeout: 4 * time.Millisecond, feeding: func(fed int) {
		if fed == 3 {
			stop()
		}
	}}
	l.feed(ctx, guard{d, "a dog"}, discard())
	if d.fed != 3 {
		t.Errorf("fed %d times", d.fed)
	}
	// A part that is late from the start: never.
	ctx, stop = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	l.expect("a part", -time.Second)
	hungry := &dog{timeout: 4 * time.Millisecond, feeding: func(int) {}}
	l.feed(ctx, guard{hungry, "a dog"}, discard())
	if hungry.fed != 0 {
		t.Errorf("fed %d times though a part hangs", hungry.fed)
	}
}

func TestCrashWait(t *testing.T) {
	var waits []time.Duration
	for panics := range 7 {
		waits = append(waits, crashWait(panics))
	}
	want := []time.Duration{0, 0, 0, 30 * time.Second, time.Minute, 5 * time.Minute, 5 * time.Minute}
	if !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestStoreOfPanicsStaysSmallAndIsEmptied(t *testing.T) {
	m := Machine{Pstore: t.TempDir(), RunDir: filepath.Join(t.TempDir(), "run")}
	for i := range keptDumps + 3 {
		name := filepath.Join(m.Pstore, "dmesg-ramoops-"+string(rune('0'+i)))
		if err := os.WriteFile(name, []byte("Panic#1 Part1\nKernel panic\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := findCrashes(m, discard())
	if c.panics != keptDumps+3 || len(c.dumps) != keptDumps {
		t.Errorf("%d panics, %d dumps", c.panics, len(c.dumps))
	}
	left, err := pstore.Read(m.Pstore)
	if err != nil || len(left) != keptDumps || left[0].ID != 3 {
		t.Errorf("%d dumps are left, %v", len(left), err)
	}
	// The next boot counts what is left.
	if again := findCrashes(m, discard()); again.panics != keptDumps {
		t.Errorf("the next boot counts %d", again.panics)
	}
	c.forgive(discard())
	if left, err := pstore.Read(m.Pstore); len(left) != 0 || err != nil {
		t.Errorf("%d dumps are left, %v", len(left), err)
	}
}

func TestReadLines(t *testing.T) {
	var got []string
	long := strings.Repeat("x", maxLine+1)
	readLines(strings.NewReader("a\r\n\x1b[2Jb\xff\tc\n"+long+"\nlast"), func(line string, begins bool) {
		got = append(got, fmt.Sprint(line, " ", begins))
	})
	want := []string{"a true", "?[2Jb?\tc true", long[:maxLine] + " true", "x false", "last true"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestSettingsHaveReasons(t *testing.T) {
	for _, architecture := range []string{"amd64", "arm64"} {
		names := map[string]bool{}
		for _, s := range Settings(architecture) {
			if s.Reason == "" || s.Value == "" || names[s.Name] || strings.HasPrefix(s.Name, "/") {
				t.Errorf("%s: %+v", architecture, s)
			}
			names[s.Name] = true
		}
	}
}

func TestKeepFails(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := keep(filepath.Join(dir, "file"), "name", ""); err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was taken for a folder: %v", err)
	}
}

// A folder that is no control group stands for one that the kernel starts nothing in.
func TestGroupThatNothingStartsIn(t *testing.T) {
	dir := t.TempDir()
	reap := reaper.New(nil)
	var reaping sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	reaping.Go(func() { _ = reap.Run(ctx) })
	defer reaping.Wait()
	defer stop()
	d := &daemon{
		machine: Machine{Program: "/proc/self/exe", Arguments: []string{"pcd", "-test.run=^$"}, RunDir: t.TempDir()},
		reaper:  reap, log: discard(), line: func(string) {}, guard: func(run func()) { run() },
		group: func(start int) (*cgroup.Group, error) { return cgroup.Make(dir, fmt.Sprint(start)) },
	}
	for range 2 {
		i, err := d.start()
		if err != nil {
			t.Fatal(err)
		}
		if status := i.child.Status(); status.ExitStatus() != 0 || i.group != nil {
			t.Errorf("pcd %s in the group %v", reaper.Describe(status), i.group)
		}
		<-i.written
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d groups are left, %v", len(left), err)
	}
}

// Stores with room for the last panic only: the count goes on within the dumps.
func TestCountGoesOnWithinDumps(t *testing.T) {
	m := Machine{Pstore: t.TempDir(), RunDir: t.TempDir()}
	file := filepath.Join(m.Pstore, "dmesg-ramoops-0")
	text := "Panic#1 Part1\n"
	for boot := 1; boot < 8; boot++ {
		if err := os.WriteFile(file, []byte(text+"<0>[ 9.0] Kernel panic\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		c := findCrashes(m, discard())
		line, needed := c.mark()
		if c.panics != boot || !needed {
			t.Fatalf("boot %d counts %d", boot, c.panics)
		}
		text = "Panic#1 Part1\n<31>[ 1.0] pcinit: " + line + "\n"
		if boot == 7 {
			text += "<31>[ 2.0] pcinit: " + c.forgive(discard()) + "\n"
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if c := findCrashes(m, discard()); c.panics != 1 {
		t.Errorf("after a good boot %d panics are counted", c.panics)
	}
	for damaged, want := range map[string]int{"": 0, mark: 0, mark + "-5": 0, mark + "99999999999999999999": 0, mark + "5000\n": maxPanics} {
		if got := marked(damaged); got != want {
			t.Errorf("%q: %d", damaged, got)
		}
	}
}
