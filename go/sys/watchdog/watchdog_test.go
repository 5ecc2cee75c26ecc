package watchdog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

func device(t *testing.T, class, name, identity, state, bootStatus string) {
	t.Helper()
	dir := filepath.Join(class, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"identity": identity, "state": state, "bootstatus": bootStatus} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHardwareBeforeSoftware(t *testing.T) {
	class := t.TempDir()
	if _, err := Find(class); !errors.Is(err, ErrNone) {
		t.Errorf("without any: %v", err)
	}
	if _, err := Find(filepath.Join(class, "none")); !errors.Is(err, ErrNone) {
		t.Errorf("without a folder: %v", err)
	}
	device(t, class, "watchdog0", "Software Watchdog", "inactive", "0")
	software := Found{Name: "watchdog0", Identity: "Software Watchdog", Software: true}
	if f, err := Find(class); !slices.Equal(f, []Found{software}) || err != nil {
		t.Errorf("with software alone: %+v, %v", f, err)
	}
	device(t, class, "watchdog1", "i6300ESB timer", "inactive", "32")
	device(t, class, "watchdog2", "iTCO_wdt", "active", "0")
	device(t, class, "watchdog3", "", "active", "0")
	f, err := Find(class)
	want := []Found{
		{Name: "watchdog1", Identity: "i6300ESB timer", CausedReset: true},
		{Name: "watchdog2", Identity: "iTCO_wdt", Running: true},
		software,
	}
	if !slices.Equal(f, want) || err != nil {
		t.Errorf("found %+v, %v, want %+v", f, err, want)
	}
}

// A pipe or a file is no watchdog: it must be refused, not fed.
func TestOtherFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "watchdog0")
	if _, err := Open(path, time.Minute); err == nil {
		t.Error("a device that isn't there was opened")
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if w, err := Open(path, time.Minute); err == nil {
		t.Errorf("a file was taken for a watchdog: %+v", w)
	}
}
