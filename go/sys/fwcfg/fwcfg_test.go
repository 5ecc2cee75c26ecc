package fwcfg

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// hand makes a sysfs in which QEMU hands over a file, with the kernel's links.
func hand(t *testing.T, name, content string) (sysfs string) {
	t.Helper()
	sysfs = t.TempDir()
	root := filepath.Join(sysfs, "firmware/qemu_fw_cfg")
	key := filepath.Join(root, "by_key/42")
	link := filepath.Join(root, "by_name", name)
	for _, dir := range []string{key, filepath.Dir(link)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(key, "raw"), []byte(content), 0o400); err != nil {
		t.Fatal(err)
	}
	back, err := filepath.Rel(filepath.Dir(link), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(back, link); err != nil {
		t.Fatal(err)
	}
	return sysfs
}

func TestRead(t *testing.T) {
	sysfs := hand(t, "opt/powercloud/join", "what it holds\n")
	for limit, want := range map[int]string{100: "what it holds\n", 14: "what it holds\n", 4: "what", 0: ""} {
		if got, err := Read(sysfs, "opt/powercloud/join", limit); string(got) != want || err != nil {
			t.Errorf("%d bytes: %q, %v", limit, got, err)
		}
	}
}

func TestNone(t *testing.T) {
	for name, sysfs := range map[string]string{
		"no QEMU":       t.TempDir(),
		"other files":   hand(t, "opt/powercloud/other", ""),
		"a longer name": hand(t, "opt/powercloud/join/more", ""),
	} {
		if got, err := Read(sysfs, "opt/powercloud/join", 10); !errors.Is(err, ErrNone) || got != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestFailures(t *testing.T) {
	sysfs := hand(t, "opt/powercloud/join", "secret")
	if err := os.WriteFile(filepath.Join(sysfs, "firmware/raw"), []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(sysfs, "../..", 10); err == nil || got != nil {
		t.Errorf("a name that leads out gave %q", got)
	}
	raw := filepath.Join(sysfs, "firmware/qemu_fw_cfg/by_key/42/raw")
	if err := errors.Join(os.Remove(raw), os.Mkdir(raw, 0o755)); err != nil {
		t.Fatal(err)
	}
	got, err := Read(sysfs, "opt/powercloud/join", 10)
	if got != nil || errors.Is(err, ErrNone) || err == nil || !strings.HasPrefix(err.Error(), "read the file opt/powercloud/join that QEMU hands over: ") {
		t.Errorf("%q, %v", got, err)
	}
}
