package mounts

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

const example = `rootfs / rootfs rw 0 0
proc /proc proc rw,nosuid 0 0
none /with\040space tmpfs rw 0 0
udev /dev devtmpfs rw 0 0
over /dev tmpfs rw 0 0
`

func TestFind(t *testing.T) {
	for target, want := range map[string]string{"/proc": "proc", "/dev": "tmpfs", "/sys": "", "/": "rootfs"} {
		if got := find(example, target); got != want {
			t.Errorf("at %s: %q, want %q", target, got, want)
		}
	}
	if got := unescape(`/with\040space\134`); got != `/with space\` {
		t.Errorf("unescaped %q", got)
	}
}

func TestMountOnce(t *testing.T) {
	target := filepath.Join(t.TempDir(), "a", "b")
	m := Mount{Target: target, Type: "tmpfs", Flags: unix.MS_NOSUID, Options: "size=1m,mode=0700", Mode: 0o755}
	if err := m.Do(); errors.Is(err, unix.EPERM) {
		t.Skip("mounting is not allowed here:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(target, unix.MNT_DETACH) })
	file := filepath.Join(target, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := All([]Mount{m}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error("the second time something was mounted over the first:", err)
	}
	targets, err := Targets()
	if err != nil || !slices.Contains(targets, target) {
		t.Errorf("%s is not in %q, %v", target, targets, err)
	}
}

func TestAbsent(t *testing.T) {
	m := Mount{Target: t.TempDir(), Type: "nosuchfs", Optional: true}
	if err := m.Do(); !errors.Is(err, ErrAbsent) {
		t.Errorf("an optional file system: %v", err)
	}
	m.Optional = false
	if err := All([]Mount{m}); err == nil || errors.Is(err, ErrAbsent) {
		t.Errorf("a file system that must be there: %v", err)
	}
}
