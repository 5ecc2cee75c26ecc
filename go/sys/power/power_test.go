package power

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestProcesses(t *testing.T) {
	proc := t.TempDir()
	for name, line := range map[string]string{
		"1":       "1 (init) S 0 1 1 0 -1 4194560 1",
		"2":       "2 (kthreadd) S 0 0 0 0 -1 2129984 0",
		"3":       "3 (rcu) 1 2 3) I 2 0 0 0 -1 69238880 0",
		"77":      "77 (pcd) S 1 77 77 0 -1 4194304 9",
		"78":      "78 (x) S 2 0 0 0 -1 2129984 (y) R 1 77 77 0 -1 4194304 9",
		"self":    "77 (pcd) S 1 77 77 0 -1 4194304 9",
		"1234567": "1234567 (y) Z 77 77 77 0 -1 4194304 9",
	} {
		dir := filepath.Join(proc, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "stat"), []byte(line), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pids, err := Processes(proc)
	slices.Sort(pids)
	if err != nil || !slices.Equal(pids, []int{77, 78, 1234567}) {
		t.Errorf("processes %v, %v", pids, err)
	}
}

func TestOnlyPID1EndsProcesses(t *testing.T) {
	if _, err := EndProcesses("/proc", time.Second); err == nil {
		t.Fatal("it went on")
	}
}

func TestUnmount(t *testing.T) {
	for target, want := range map[string]bool{"/": true, "/dev/pts": true, "/run": true, "/var": false, "/runner": false} {
		if keep(target) != want {
			t.Errorf("%s is kept: %v", target, !want)
		}
	}
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Skip("mounting is not allowed here:", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
	busy, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	// In use: neither can be done while the file is open for writing.
	if err := Unmount([]string{"/", dir}); !errors.Is(err, unix.EBUSY) {
		t.Errorf("in use: %v", err)
	}
	if err := busy.Close(); err != nil {
		t.Fatal(err)
	}
	if err := Unmount([]string{"/", dir, filepath.Join(dir, "not-mounted")}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(busy.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Error("it is still mounted:", err)
	}
}
