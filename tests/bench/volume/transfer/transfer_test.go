package transfer

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMeasure(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	before := bytes.Repeat([]byte{7}, 4<<20)
	if err := os.WriteFile(name, before, 0o600); err != nil {
		t.Fatal(err)
	}
	const offset, size = 1 << 20, 5<<19 + 4096
	s, err := Place{Name: "file", Path: name, Offset: offset}.Measure(size)
	if err != nil || s.Place != "file" || s.Bytes != size || s.Written <= 0 || s.Read <= 0 {
		t.Errorf("%+v, %v", s, err)
	}
	after, err := os.ReadFile(name)
	if err != nil || len(after) != len(before) || !bytes.Equal(after[:offset], before[:offset]) || !bytes.Equal(after[offset+size:], before[offset+size:]) {
		t.Errorf("it wrote elsewhere: %v", err)
	}
	if bytes.Contains(after[offset:offset+size], before[:100]) {
		t.Error("it didn't write everything")
	}
}

func TestRefused(t *testing.T) {
	folder := t.TempDir()
	if _, err := (Place{Name: "bare disk", Path: filepath.Join(folder, "none")}).Measure(4096); err == nil || !strings.HasPrefix(err.Error(), "write the bare disk: open ") {
		t.Errorf("without a file: %v", err)
	}
	name := filepath.Join(folder, "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (Place{Name: "file", Path: name, Disk: "none"}).Measure(4096); err == nil || !strings.HasPrefix(err.Error(), "look what the disk has moved: ") {
		t.Errorf("without a disk: %v", err)
	}
}
