package console

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"powercloud.unidatum.com/tests/output"
)

// stuck blocks until it is released.
type stuck struct {
	release chan struct{}
	output.Text
}

func (s *stuck) Write(b []byte) (int, error) {
	<-s.release
	return s.Text.Write(b)
}

func TestOneStuckConsoleHoldsNobody(t *testing.T) {
	serial, monitor := &stuck{release: make(chan struct{})}, &output.Text{}
	f := New(Sink{"ttyS0", serial}, Sink{"tty0", monitor})
	defer f.Close()
	var want strings.Builder
	for i := range queueSize + 11 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		if n, err := f.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
		// The monitor keeps up; without this the test's own speed could fill
		// its queue.
		if i%100 == 0 {
			wait(t, func() bool { return strings.Contains(monitor.String(), line) })
		}
	}
	wait(t, func() bool { return monitor.String() == want.String() })
	if serial.String() != "" {
		t.Errorf("the stuck console has %q", serial.String())
	}
	close(serial.release)
	f.Flush(time.Minute)
	got := serial.String()
	if !strings.HasPrefix(got, "line 0\n") || !strings.Contains(got, " lines were lost: ttyS0 was too slow)\n") {
		t.Errorf("the console that was stuck has %.80q...", got)
	}
}

// wait waits until a condition holds.
func wait(t *testing.T, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal("the condition didn't come to hold within a minute")
		}
	}
}

func TestFlushGivesUp(t *testing.T) {
	serial := &stuck{release: make(chan struct{})}
	f := New(Sink{"ttyS0", serial})
	defer close(serial.release)
	defer f.Close()
	_, _ = f.Write([]byte("a\n"))
	f.Flush(time.Millisecond)
}

func TestLinesAreBoundedAndWhole(t *testing.T) {
	s := &output.Text{}
	f := New(Sink{"tty0", s})
	defer f.Close()
	_, _ = f.Write([]byte(strings.Repeat("x", MaxLine+5) + "\r\nno line feed"))
	f.Flush(time.Minute)
	if got, want := s.String(), strings.Repeat("x", MaxLine)+"\nno line feed\n"; got != want {
		t.Errorf("%d bytes were written, want %d", len(got), len(want))
	}
}

func TestDevices(t *testing.T) {
	dev := t.TempDir()
	for _, name := range []string{"ttyS0", "tty0", "tty1", "hvc0"} {
		if err := os.WriteFile(filepath.Join(dev, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table := "tty1                 -WU (EC  p  )    4:2\nttyS0                -W- (E   p a)    4:64\n" +
		"netcon0 -W- (E)\n../etc/passwd -W-\ntty0 -WU\nhvc0 -W-\n\n"
	want := []string{filepath.Join(dev, "tty0"), filepath.Join(dev, "ttyS0"), filepath.Join(dev, "hvc0")}
	if got := Devices(table, dev); !slices.Equal(got, want) {
		t.Errorf("devices %q, want %q", got, want)
	}
}

func TestOpenDevice(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip("no pseudo-terminals here:", err)
	}
	defer func() { _ = master.Close(); _ = slave.Close() }()
	f, err := OpenDevice(slave.Name())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("hello\n"); err != nil {
		t.Error(err)
	}
	b := make([]byte, 7)
	if n, err := master.Read(b); string(b[:n]) != "hello\r\n" || err != nil {
		t.Errorf("the terminal has %q, %v", b[:n], err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := OpenDevice(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a console that isn't there was opened")
	}
}

func TestSameOrderEverywhere(t *testing.T) {
	first, second := &output.Text{}, &output.Text{}
	f := New(Sink{"ttyS0", first}, Sink{"tty0", second})
	defer f.Close()
	var writers sync.WaitGroup
	for writer := range 8 {
		writers.Go(func() {
			for i := range 100 {
				_, _ = fmt.Fprintf(f, "%d %d\n", writer, i)
			}
		})
	}
	writers.Wait()
	f.Flush(time.Minute)
	if first.String() != second.String() || strings.Count(first.String(), "\n") != 800 {
		t.Error("the consoles differ")
	}
}
