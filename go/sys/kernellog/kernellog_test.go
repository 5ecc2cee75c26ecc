package kernellog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestRecords(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	for _, c := range []struct {
		line string
		want []string
	}{
		{"hello\r\n", []string{"<31>pcd: hello\n"}},
		{"", []string{"<31>pcd: \n"}},
		{long + "y", []string{"<31>pcd: " + long + "\n", "<31>pcd: y\n"}},
	} {
		if got := records(Debug, "pcd", c.line); !slices.Equal(got, c.want) {
			t.Errorf("%.20q: %q", c.line, got)
		}
	}
	if got := records(Emergency, "pcinit", "a")[0]; got != "<24>pcinit: a\n" {
		t.Errorf("an emergency: %q", got)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w, err := Open(path, "pcd", Info)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := w.Write([]byte("a\nb\n")); n != 4 || err != nil {
		t.Errorf("Write: %d, %v", n, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(path); string(got) != "<30>pcd: a\n<30>pcd: b\n" || err != nil {
		t.Errorf("the log has %q, %v", got, err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), "pcd", Info); err == nil {
		t.Error("a log that isn't there was opened")
	}
}
