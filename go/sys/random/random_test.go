package random

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestMix(t *testing.T) {
	dir := t.TempDir()
	device, source := filepath.Join(dir, "device"), filepath.Join(dir, "source")
	for _, name := range []string{device, source} {
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seen := map[string]bool{}
	for _, more := range [][]byte{nil, {1}, {1, 2}} {
		if err := Mix(device, []string{source, "/dev/zero", filepath.Join(dir, "none")}, more); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(device)
		if err != nil || len(b) != 32 || bytes.Contains(b, []byte("xxxx")) {
			t.Fatalf("the device got %x, %v", b, err)
		}
		if seen[string(b)] {
			t.Error("the same was added twice")
		}
		seen[string(b)] = true
	}
	if err := Mix(filepath.Join(dir, "missing"), nil); err == nil {
		t.Error("a device that isn't there was written")
	}
}

func TestWait(t *testing.T) {
	if err := Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if ready, err := Ready(); !ready || err != nil {
		t.Errorf("ready: %v, %v", ready, err)
	}
}
