package progress

import (
	"bytes"
	"strings"
	"sync"
	"testing"
)

func TestNothingIsDrawnOffATerminal(t *testing.T) {
	var screen bytes.Buffer
	bar := New(&screen, false, "storing", Bytes)
	bar.Expect(100)
	bar.Done(100)
	printed := false
	bar.Print(func() { printed = true })
	bar.Close()
	if screen.Len() != 0 || !printed {
		t.Errorf("drawn: %q; printed: %v", screen.String(), printed)
	}
	// The zero bar is such a one.
	(&Bar{}).Expect(1)
	(&Bar{}).Close()
}

// lastLine returns what the cursor's line shows.
func lastLine(screen string) string {
	screen = screen[strings.LastIndexByte(screen, '\n')+1:]
	screen = screen[strings.LastIndex(screen, "\x1b[2K")+1:]
	screen = strings.TrimPrefix(screen, "[2K")
	return screen[strings.LastIndexByte(screen, '\r')+1:]
}

func TestBarIsRemovedBeforeOtherOutput(t *testing.T) {
	var screen bytes.Buffer
	bar := New(&screen, true, "storing", Bytes)
	bar.Expect(1000)
	bar.Done(500)
	if !strings.Contains(screen.String(), "storing") {
		t.Fatalf("drawn: %q", screen.String())
	}
	bar.Print(func() {
		if line := lastLine(screen.String()); line != "" {
			t.Errorf("under the output: %q", line)
		}
		screen.WriteString("stored x\n")
	})
	// More work than was expected, and more that is announced late.
	bar.Done(600)
	bar.Expect(10000)
	bar.Done(100)
	bar.Close()
	if line := lastLine(screen.String()); line != "" {
		t.Errorf("after Close: %q", line)
	}
	drawn := screen.Len()
	bar.Done(1)
	bar.Expect(1)
	bar.Close()
	if screen.Len() != drawn {
		t.Errorf("drawn after Close: %q", screen.String()[drawn:])
	}
}

func TestTotalIgnoresLaterAnnouncements(t *testing.T) {
	bar := New(&bytes.Buffer{}, true, "storing", Items)
	total := bar.Total(3)
	total.Expect(100)
	total.Done(2)
	if bar.max != 3 || bar.done != 2 {
		t.Errorf("%d of %d", bar.done, bar.max)
	}
}

func TestBarTakesManyGoroutines(t *testing.T) {
	bar := New(&bytes.Buffer{}, true, "storing", Bytes)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 100 {
				bar.Expect(2)
				bar.Done(1)
				bar.Print(func() {})
			}
		})
	}
	group.Wait()
	bar.Close()
	if bar.max != 1600 || bar.done != 800 {
		t.Errorf("%d of %d", bar.done, bar.max)
	}
}
