package usage

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// proc makes a tree with a file in it.
func proc(t *testing.T, name, content string) string {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestReadCPU(t *testing.T) {
	// In hundredths of a second: user, nice, system, idle, iowait, irq, softirq,
	// steal, guest, guest_nice.
	first, err := ReadCPU(proc(t, "stat", "cpu  1000 100 500 8000 300 20 30 50 900 90\n"+
		"cpu0 500 50 250 4000 150 10 15 25 450 45\ncpu2 500 50 250 4000 150 10 15 25 450 45\nintr 7 1 2 3\nctxt 9\nbtime 1700000000\n"))
	if want := (CPU{Count: 2, Busy: 17, Total: 100}); err != nil || first != want {
		t.Fatalf("%+v, %v; want %+v", first, err, want)
	}
	if got := first.Percent(CPU{}); got != 17 {
		t.Errorf("since the start: %v%%", got)
	}
	second, err := ReadCPU(proc(t, "stat", "cpu  1700 100 600 9000 500 20 30 50\ncpu0 850 50 300 4500 250 10 15 25\n"))
	if got := second.Percent(first); err != nil || math.Abs(got-40) > 1e-9 || second.Count != 1 {
		t.Errorf("%+v, %v: %v%%", second, err, got)
	}
}

func TestPercent(t *testing.T) {
	for name, c := range map[string]struct {
		earlier, later CPU
		want           float64
	}{
		"no time between":      {CPU{Busy: 5, Total: 10}, CPU{Busy: 5, Total: 10}, 0},
		"idle":                 {CPU{Busy: 5, Total: 10}, CPU{Busy: 5, Total: 20}, 0},
		"all of it":            {CPU{Busy: 5, Total: 10}, CPU{Busy: 15, Total: 20}, 100},
		"idle time went back":  {CPU{Busy: 5, Total: 10}, CPU{Busy: 7, Total: 11}, 100},
		"all of it went back":  {CPU{Busy: 5, Total: 10}, CPU{Busy: 4, Total: 9}, 0},
		"busy time went back":  {CPU{Busy: 5, Total: 10}, CPU{Busy: 4, Total: 12}, 0},
		"numbers that are not": {CPU{}, CPU{Busy: math.Inf(1), Total: math.Inf(1)}, 0},
	} {
		if got := c.later.Percent(c.earlier); got != c.want {
			t.Errorf("%s: %v%%, want %v%%", name, got, c.want)
		}
	}
}

func TestReadMemory(t *testing.T) {
	got, err := ReadMemory(proc(t, "meminfo", "MemTotal:        8008000 kB\nMemFree:          100000 kB\nMemAvailable:    6775000 kB\nHugePages_Total:       0\n"))
	if want := (Memory{Used: 1233000 << 10, Total: 8008000 << 10}); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	got, err = ReadMemory(proc(t, "meminfo", "MemTotal: 10 kB\nMemAvailable: 11 kB\n"))
	if want := (Memory{Used: 0, Total: 10 << 10}); err != nil || got != want {
		t.Errorf("more available than there is: %+v, %v", got, err)
	}
}

func TestWhatCantBeRead(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no numbers": "cpu a b c\ncpu0 a b c\n", "no processors": "cpu 1 2 3 4\n", "no name": "cpux 1 2 3\n",
		"an endless line": strings.Repeat("1 ", 2<<20),
	} {
		if got, err := ReadCPU(proc(t, "stat", text)); err == nil || got != (CPU{}) {
			t.Errorf("stat, %s: %+v", name, got)
		}
	}
	for name, text := range map[string]string{
		"empty": "", "no number": "MemTotal: x kB\n", "another unit": "MemTotal: 1 MB\nMemAvailable: 1 MB\n",
		"nothing available": "MemTotal: 1 kB\n", "no total": "MemAvailable: 1 kB\n",
	} {
		if got, err := ReadMemory(proc(t, "meminfo", text)); err == nil || got != (Memory{}) {
			t.Errorf("meminfo, %s: %+v", name, got)
		}
	}
	if _, err := ReadCPU(filepath.Join(t.TempDir(), "none")); err == nil || !strings.HasPrefix(err.Error(), "read how busy the processors are: ") {
		t.Error(err)
	}
	if _, err := ReadMemory(t.TempDir()); err == nil || !strings.HasPrefix(err.Error(), "read how much memory is in use: ") {
		t.Error(err)
	}
}

func TestThisMachine(t *testing.T) {
	cpu, err := ReadCPU("/proc")
	if err != nil || cpu.Count < 1 || cpu.Busy <= 0 || cpu.Total < cpu.Busy {
		t.Errorf("%+v, %v", cpu, err)
	}
	memory, err := ReadMemory("/proc")
	if err != nil || memory.Used == 0 || memory.Total <= memory.Used {
		t.Errorf("%+v, %v", memory, err)
	}
}
