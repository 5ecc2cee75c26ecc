package powerbutton

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func event(kind, code uint16, value uint32) []byte {
	b := make([]byte, 16, eventSize)
	b = binary.NativeEndian.AppendUint16(b, kind)
	b = binary.NativeEndian.AppendUint16(b, code)
	return binary.NativeEndian.AppendUint32(b, value)
}

func TestPress(t *testing.T) {
	other, press, release := event(eventKey, 30, pressed), event(eventKey, keyPower, pressed), event(eventKey, keyPower, 0)
	for _, c := range []struct {
		events []byte
		want   bool
	}{
		{nil, false},
		{press[:23], false},
		{release, false},
		{event(0, keyPower, pressed), false},
		{append(append(append([]byte{}, other...), release...), press...), true},
	} {
		if got := isPress(c.events); got != c.want {
			t.Errorf("%x is a press: %v", c.events, got)
		}
	}
}

func TestRead(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- read(in) }()
	for _, e := range [][]byte{event(eventKey, 30, pressed), event(eventKey, keyPower, pressed)} {
		if _, err := out.Write(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	go func() { ended <- read(in) }()
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("the end of the device was taken for a press")
	}
}

func TestNone(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "event0"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Wait(t.Context(), dir); !errors.Is(err, ErrNone) {
		t.Errorf("a file was taken for a button: %v", err)
	}
}
