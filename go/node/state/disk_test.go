package state

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"powercloud.unidatum.com/go/node/volume"
	"powercloud.unidatum.com/go/node/volume/header"
)

// disk returns a place on a partition that begins with some bytes.
func disk(t *testing.T, begin []byte) *Disk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "partition")
	content := make([]byte, header.Area)
	copy(content, begin)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return &Disk{Partition: path, Target: filepath.Join(t.TempDir(), "target"), Random: bytes.NewReader(nil),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Template: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(nil)), nil }}
}

// TestDiskThatIsNotOpen has what doesn't take the kernel's device mapper; package volume
// tests the rest on a real kernel.
func TestDiskThatIsNotOpen(t *testing.T) {
	d := disk(t, nil)
	wantFound(t, d, Blank)
	if space, err := d.Space(); err != nil || space != (Space{}) {
		t.Errorf("%+v, %v", space, err)
	}
	if err := d.Grow(t.Context()); err == nil {
		t.Error("a volume grew that isn't open")
	}
	if err := d.Erase(); err != nil {
		t.Error(err)
	}
	wantFound(t, d, Blank)
	d.Partition += "-missing"
	if _, err := d.Look(); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// TestForeignDisk: it counts as blank, so that the node says at its enrollment what is
// wrong, and stays as it is.
func TestForeignDisk(t *testing.T) {
	foreign := []byte("somebody's data")
	d := disk(t, foreign)
	wantFound(t, d, Blank)
	_, err := d.Create(t.Context(), header.Owner{}, new(header.Key), populate)
	if !errors.Is(err, volume.ErrForeign) || !strings.HasPrefix(err.Error(), "state disk "+d.Partition+" holds data that is not a PowerCloud volume; refusing to format it") {
		t.Error(err)
	}
	if content, err := os.ReadFile(d.Partition); err != nil || !bytes.HasPrefix(content, foreign) {
		t.Errorf("the disk was changed, %v", err)
	}
	missing := errors.New("no template")
	d.Template = func() (io.ReadCloser, error) { return nil, missing }
	if _, err := d.Create(t.Context(), header.Owner{}, new(header.Key), populate); !errors.Is(err, missing) {
		t.Error(err)
	}
}
