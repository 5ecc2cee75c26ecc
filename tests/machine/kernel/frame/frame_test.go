package frame

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestReadsWhatWasWritten(t *testing.T) {
	var port bytes.Buffer
	if _, err := io.WriteString(Writer{&port, Output}, "PASS\n"); err != nil {
		t.Fatal(err)
	}
	if err := Write(&port, Status, []byte{0}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"oPASS\n", "s\x00"} {
		kind, content, err := Read(&port)
		if got := string(kind) + string(content); err != nil || got != want {
			t.Errorf("read %q, %v, want %q", got, err, want)
		}
	}
	if _, _, err := Read(&port); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame the error is %v", err)
	}
}

func TestReadRefuses(t *testing.T) {
	for sent, want := range map[string]string{
		"o\x00\x00\x00\x02x":        "unexpected EOF",
		"o\x00\x00":                 "unexpected EOF",
		"x\x00\x00\x00\x00":         "there is no kind 'x'",
		"o\xff\x00\x00\x00":         "more than",
		"s\x00\x00\x00\x02\x00\x00": "a status has 2 bytes",
	} {
		if _, _, err := Read(strings.NewReader(sent)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", sent, err, want)
		}
	}
	if err := Write(io.Discard, Report, make([]byte, maxContent+1)); err == nil {
		t.Error("a frame was written that can't be read")
	}
}

// FuzzRead reads anything; what it accepts is written the same.
func FuzzRead(f *testing.F) {
	f.Add([]byte("o\x00\x00\x00\x05PASS\ns\x00\x00\x00\x01\x00"))
	f.Add([]byte("r\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		from := bytes.NewReader(sent)
		kind, content, err := Read(from)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, kind, content); err != nil || !bytes.Equal(again.Bytes(), sent[:len(sent)-from.Len()]) {
			t.Errorf("%q was written as %q, %v", sent, again.Bytes(), err)
		}
	})
}
